"""The smallest inferlet: a function, its arguments, its result."""

from tartlet_sdk import inferlet


@inferlet
def hello(name: str = "world") -> str:
    """Greet somebody."""
    print("This is printed by a program in a sandbox.")
    return f"Hello, {name}!"
