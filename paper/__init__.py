"""The paper's tables and figures by name, each computed here and set beside what the paper prints."""
