"""Drawn scenes with paragraphs about them: a small world to train and test captioners on, deterministic by seed.

>>> from scalegrad.tasks.captioning.scenes import make_scene
>>> scene = make_scene("valid", 0)
>>> scene.image.size, scene == make_scene("valid", 0), scene == make_scene("test", 0)
((96, 96), True, False)
"""

from scalegrad.tasks.captioning.scenes.scene import Scene, make_scene, make_scenes

__all__ = ["Scene", "make_scene", "make_scenes"]
