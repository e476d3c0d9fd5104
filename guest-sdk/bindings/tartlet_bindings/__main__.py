"""`python -m tartlet_bindings` writes all bindings anew; `make bindings` calls it."""

from __future__ import annotations

from tartlet_bindings.outputs import ROOT, outputs


def main() -> None:
    """Write what has changed, and say what that is."""
    for path, text in outputs().items():
        is_new = not path.exists() or path.read_text(encoding="utf-8") != text
        if is_new:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        print(f"{'wrote' if is_new else 'as it was:'} {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
