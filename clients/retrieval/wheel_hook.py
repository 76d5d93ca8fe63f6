"""Adds the Node.js package and the manual page to the wheel, and sets the wheel's platform. `npm run wheel` runs it."""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelHook(BuildHookInterface[Any]):
    """Reads TRAWL_WHEEL_NODE (the package), TRAWL_WHEEL_MANUAL (the page) and TRAWL_WHEEL_PLATFORM (the tag)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds the wheel."""
        folder, manual, platform = (os.environ.get(f"TRAWL_WHEEL_{name}") for name in ("NODE", "MANUAL", "PLATFORM"))
        if not folder or not manual or not platform:
            raise RuntimeError("The wheel contains a Node.js package: `npm run wheel` builds both.")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["force_include"][folder] = "trawl_retrieval/_node"
        build_data["shared_data"][manual] = "share/man/man1/trawl.1"
