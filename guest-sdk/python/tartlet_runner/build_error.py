"""What a program that cannot be compiled fails its build with."""


class NotCompiled(Exception):
    """The build looks for the text between the two marks."""

    def __str__(self) -> str:
        return f"tartlet-build-error:\n{self.args[0]}\ntartlet-build-error-end"
