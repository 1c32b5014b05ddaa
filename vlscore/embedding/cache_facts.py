"""What a cached embedding depends on besides the content of its image or report."""

from typing import Any

from vlscore.core import __version__, libraries
from vlscore.data import READING_RULES, ImagePolicy
from vlscore.encoders import ImagePipeline, JointEncoder, Precision

_OURS = "vlscore."


def embedding_facts(
    encoder: JointEncoder, policy: ImagePolicy, precision: Precision, holds: str, device: str
) -> dict[str, Any] | None:
    """Return all facts that embeddings depend on besides the content, for a key of the cache.

    Args:
        encoder: the encoder; it needs no network.
        holds: "reports", "images" or "lateral images".
        device: kind of the device that computes.

    Returns: None if the code of the encoder or its image pipeline is neither vlscore's nor has a
        `cache_version`; then nothing may be cached.
    """
    code = _code_of(encoder)
    if code is None:
        return None
    facts = {
        "holds": holds,
        "encoder": encoder.card.name,
        "checksum": encoder.checksum,
        "code": code,
        "precision": precision,
        "device": device,
        "libraries": libraries(),
    }
    if holds == "reports":
        return facts
    pipeline = encoder.image_pipeline
    pipeline_code = _code_of(pipeline)
    if pipeline_code is None:
        return None
    # All fields of the policy: one that refuses images decides which images have numbers.
    return facts | {
        "pipeline": pipeline.identity(),
        "pipeline_code": pipeline_code,
        "policy": repr(policy),
        "reading_rules": READING_RULES,
    }


def _code_of(member: JointEncoder | ImagePipeline) -> str | None:
    """Return a text that identifies this version of the code; None if there is none."""
    kind = type(member)
    version = __version__ if kind.__module__.startswith(_OURS) else member.cache_version
    return None if version is None else f"{kind.__module__}:{kind.__qualname__} {version}"
