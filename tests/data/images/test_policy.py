"""Image policies have short texts, that say what the fields say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlscore.data import ImagePolicy
from vlscore.errors import InvalidSetting


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        (None, ImagePolicy()),
        ("auto", ImagePolicy()),
        ("percentile", ImagePolicy(window="percentile")),
        ("authors", ImagePolicy(as_authors=True)),
        ("other_modalities=accept", ImagePolicy(other_modalities="accept")),
        ("other-modalities=accept", ImagePolicy(other_modalities="accept")),
        (
            "auto,other_modalities=accept,frame=2",
            ImagePolicy(other_modalities="accept", frame=2),
        ),
        (" minmax , frame = 0 ", ImagePolicy(window="minmax", frame=0)),
        ("max_pixels=1_000_000_000", ImagePolicy(max_pixels=10**9)),
        (ImagePolicy(frame=3), ImagePolicy(frame=3)),
    ],
)
def test_short_texts(text: str | None, policy: ImagePolicy) -> None:
    assert ImagePolicy.named(text) == policy


@given(
    st.sampled_from(["auto", "header", "minmax", "percentile", "full"]),
    st.one_of(st.none(), st.integers(0, 99)),
    st.sampled_from(["refuse", "accept"]),
    st.booleans(),
)
def test_a_signature_names_its_policy(
    window: str, frame: int | None, other: str, as_authors: bool
) -> None:
    policy = ImagePolicy(window=window, frame=frame, other_modalities=other)
    if as_authors:
        policy = ImagePolicy(as_authors=True)
    assert ImagePolicy.named(policy.signature()) == policy


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("bright", "window is one of auto, header.*not 'bright'"),
        ("auto,frame", "'frame' is none of these"),
        ("frame=two", "frame is a whole number, not 'two'"),
        ("frame=-1", "frame is a whole number, at least 0, not -1"),
        ("frame=1,frame=2", "states frame twice"),
        ("other_modalities=all", "other_modalities is one of refuse, accept, not 'all'"),
        ("authors,frame=1", "takes no further fields, not 'frame=1'"),
    ],
)
def test_what_is_not_understood_is_named(text: object, reason: str) -> None:
    with pytest.raises(InvalidSetting, match=reason):
        ImagePolicy.named(text)
