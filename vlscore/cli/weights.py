"""`vlscore weights`: where checkpoints come from, and what is in a file."""

from pathlib import Path

from cyclopts import App

from vlscore.cli.output import echo
from vlscore.errors import InvalidSetting

weights = App(
    name="weights",
    group_commands="Commands",
    help="Find, fetch, check and convert files of encoders and metrics.",
)

_TO_DO_BY_HAND = 1


@weights.command(name="list")
def list_weights() -> None:
    """List where the files of each encoder, and of each network of metrics, come from.

    Also lists their licence, and C of an encoder. "found" means that vlscore finds them without
    --weights.
    """
    from vlscore.cli.encoders import facts_text
    from vlscore.encoders import encoder_card, is_here, network_cards, published_weights

    for name, entry in published_weights().items():
        card = encoder_card(name)
        found = "found" if is_here(name) else "not found"
        facts = {
            "status": f"{entry.status}; {found} on this machine",
            "files": ", ".join(file.name for file in entry.files),
            "source": entry.source,
            "licence": card.licence,
            "C": "" if card.C is None else f"{card.C:g} ({card.C_source})",
            "obtain": entry.obtain,
        }
        echo(facts_text(name, {key: value for key, value in facts.items() if value}) + "\n")
    for name, network in network_cards().items():
        found = "found" if is_here(name) else "not found"
        facts = {
            "network": network.title,
            "status": f"{network.weights.status}; {found} on this machine",
            "files": ", ".join(file.name for file in network.weights.files),
            "source": network.weights.source,
            "licence": network.licence,
            "metrics": ", ".join(network.metrics),
            "obtain": network.weights.obtain,
        }
        echo(facts_text(name, {key: value for key, value in facts.items() if value}) + "\n")


@weights.command
def fetch(name: str, /) -> None:
    """Download the files of an encoder, or of a metric's networks, from the Hugging Face hub.

    Files are stored in the hub's own cache (HF_HOME), and models of transformers in the folder that
    `vlscore weights path` prints; vlscore finds them there. HF_HUB_OFFLINE is respected. Each file
    must have the published sha256, or if none is published that of its first download. If an
    encoder is not on the hub, only its vocabulary is downloaded; the command then prints what you
    must do, and the exit status is 1.

    Example: vlscore weights fetch chexbert

    Args:
        name: Encoder, network or metric, such as biovil or radcliq-v1; `vlscore weights list`
            lists them.
    """
    from vlscore.encoders import fetch as run
    from vlscore.encoders import networks_named

    is_done = True
    for each in networks_named(name) or [name]:
        fetched = run(each)
        for path in fetched.paths:
            echo(path)
            if said := fetched.digests.get(path):
                echo(f"  {said}")
        if not fetched.paths and not fetched.left_to_do:
            echo(f"nothing to fetch: {each} ships with vlscore")
        if fetched.left_to_do:
            echo(fetched.left_to_do, err=True)
            is_done = False
    if not is_done:
        raise SystemExit(_TO_DO_BY_HAND)


@weights.command
def verify(path: Path, /, *, encoder: str | None = None, tokenizer: Path | None = None) -> None:
    """Read a checkpoint safely to its end, and print what is in it.

    Fails if the file would run code, is truncated, describes its own content wrongly, or has the
    name of a published file but another checksum. The digest is that of the tensors, and does not
    change if the file is converted. Signatures show the first digits of the checksum of digest,
    vocabulary and preprocessing together; --encoder prints both.

    Example: vlscore weights verify chexpert_resnet50.ckpt -e gloria

    Args:
        path: Checkpoint, or a folder of checkpoints.
        encoder: Also load it as this encoder, and print what signatures show.
        tokenizer: Folder or vocabulary file, with --encoder.
    """
    from vlscore.encoders import verify as run

    if tokenizer is not None and encoder is None:
        raise InvalidSetting(
            "--tokenizer is used with --encoder only; name the encoder, or leave it out"
        )
    for checked in run(path):
        published = ", ".join(checked.published_for) or "no checksum known for this name"
        echo(f"{checked.path}")
        echo(f"  tensors    {checked.tensors} ({checked.numbers:,} numbers)")
        echo(f"  digest     {checked.digest}")
        echo(f"  sha256     {checked.sha256}")
        echo(f"  published  {published}")
    if encoder is not None:
        from vlscore.encoders import load_encoder

        loaded = load_encoder(encoder, weights=path, tokenizer=tokenizer)
        echo(f"{loaded.card.name}")
        echo(f"  digest     {loaded.weights_digest}")
        echo(f"  checksum   {loaded.checksum}")


@weights.command
def path(name: str | None = None, /) -> None:
    """Print the folder that is searched for checkpoints without --weights.

    Put an encoder's checkpoint into a sub-folder with the encoder's name, and likewise for networks
    of metrics. VLSCORE_WEIGHTS (such a folder, or the file of an encoder) is searched first.

    Example: d="$(vlscore weights path gloria)"; mkdir -p "$d"; cp chexpert_resnet50.ckpt "$d"

    Args:
        name: Encoder or network. Default: print the folder of all.
    """
    from vlscore.encoders import weights_folder, weights_of

    echo(weights_folder() if name is None else weights_folder() / weights_of(name).name)


@weights.command
def convert(source: Path, target: Path, /, *, overwrite: bool = False) -> None:
    """Write a checkpoint's tensors as safetensors, which every library reads without pickle.

    Names, values and the digest of the tensors do not change. A file with the name of the published
    one and the ending .safetensors is found without --weights, and is used instead of it.

    Example: vlscore weights convert chexpert_resnet50.ckpt chexpert_resnet50.safetensors

    Args:
        source: Checkpoint of any container.
        target: File to write, *.safetensors.
        overwrite: Replace the file if it exists.
    """
    from vlscore.encoders import convert as run

    digest = run(source, target, overwrite=overwrite)
    echo(target)
    echo(f"  digest     {digest}")
