"""The evidence of docs/frontier.md: where episodes end whose actions differ in their digits."""

from goatrl import tasks
from last_digits import compare


def test_where_nothing_is_hit_small_differences_stay_small() -> None:
    reach = tasks.get("reach-left-right")
    assert set(compare(reach, 3, noise=0.0).values()) == {0.0}
    assert 0.0 < compare(reach, 3, noise=1e-6)["upper quartile"] < 1e-3


def test_a_hit_makes_them_large() -> None:
    slide = tasks.get("slide-left-right")
    assert set(compare(slide, 8, noise=0.0).values()) == {0.0}
    assert compare(slide, 8, noise=1e-6)["median"] > 0.05
