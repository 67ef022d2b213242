"""The page people rate on: FastAPI, rendered on the server, no build step, no script needed."""

from scalegrad.study.web.app import create_app, serve

__all__ = ["create_app", "serve"]
