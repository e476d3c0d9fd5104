"""Runs a Python inferlet inside its component: from source (`app`), or built into the component (`built_app`)."""
