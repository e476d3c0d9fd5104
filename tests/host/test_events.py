from tartlet.events import RunUsage


def test_usage_reads_as_one_line_of_figures() -> None:
    """The line names tokens, cached tokens, shared pages, time to the first token, rate and time."""
    usage = RunUsage(
        prompt_tokens=1200,
        cached_tokens=1000,
        generated_tokens=320,
        shared_pages=15,
        forks=5,
        first_token_ms=84.4,
        tokens_per_second=55.55,
        wall_ms=6123.0,
    )

    assert str(usage) == (
        "320 tokens generated, 1,200 prompt tokens (1,000 cached), 15 pages shared by 5 forks, "
        "first token after 84 ms, 55.5 tokens/s, 6.12 s"
    )


def test_a_run_without_tokens_has_no_rates() -> None:
    """What did not happen is not in the line."""
    assert str(RunUsage(wall_ms=1500)) == "1.50 s"
    assert "first token" not in str(RunUsage(generations=1))
    assert "tokens/s" not in str(RunUsage(generations=1))
