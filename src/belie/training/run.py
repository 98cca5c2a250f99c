"""One training: a data set, a model, a method of TRL; an adapter and everything that tells how it was made.

Knows: which trainer goes with which form, what is written beside an adapter, how a stopped training goes on.
Does not know: optimisers, losses, generation (TRL, PEFT and transformers do).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from belie.models.adapters import RECORD, read
from belie.models.resolve import resolve
from belie.respondents.base import BadInput
from belie.runs import files
from belie.training.episodes import Episodes, earned, prompt_key
from belie.training.folder import DataSet, check_name, read_data
from belie.training.grades import permit, warning
from belie.training.method import COLUMNS, FORM, FREE, Training
from belie.training.record import mark, write_card, write_record
from belie.training.rewards import REWARDS_VERSION, functions
from belie.training.sets import Example

#: Raised whenever the same options would train otherwise.
TRAINING_VERSION = 1
_PACKAGES = ("belie", "torch", "transformers", "trl", "peft", "datasets", "accelerate")
Tell = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training left: the folder of the adapter, and TRL's log, one entry a step (``step``, ``loss``, ``reward``
    and what else the method tells)."""

    folder: Path
    log: tuple[Mapping[str, Any], ...]
    seconds: float
    too_long: int


def train(
    model: str,
    data: str | Path,
    training: Training,
    out: str | Path,
    *,
    resume: bool = False,
    i_study_deception: bool = False,
    tell: Tell | None = None,
) -> Trained:
    """Trains a LoRA adapter on ``local/…`` and writes it to ``out`` with a record of how it was made.

    ``out`` holds adapter_model.safetensors, adapter_config.json, training.json (options, versions, hashes of weights
    and data, log), a card, and checkpoints; audit it as ``local/…+OUT``. With ``resume`` the last checkpoint in ``out``
    goes on, with the same options (steps may be more). Raises BadInput.
    """
    out = Path(out)
    training.check()
    dataset = read_data(data)
    permit(dataset.recipe, i_study_deception)
    check_name(out, dataset.recipe)
    wanted = FORM[training.method]
    if dataset.form != wanted:
        raise BadInput(
            f"{data} is in form {dataset.form}; {training.method} learns from {wanted}: make data with --form {wanted}."
        )
    if not model.startswith("local/"):
        raise BadInput(f"{model}: training needs open weights in this process, so a model local/NAME.")
    _need()
    folder = resolve(model)
    if read(folder) is not None:
        raise BadInput(f"{model}: an adapter is trained on a whole model; merge the first one to train on.")
    checkpoint = _checkpoint(out, model, dataset, training, resume)
    return _trained(model, folder, dataset, training, out, checkpoint, tell or (lambda _: None))


def _need() -> None:
    for name in ("trl", "peft", "datasets"):
        try:
            version(name)
        except PackageNotFoundError:
            raise BadInput(f"Training needs {name}, not installed here: pip install 'belie[train]'.") from None


def _first() -> bool:
    """Whether this is the process, of several on as many GPUs, that writes files."""
    return os.environ.get("RANK", "0") == "0"


def _checkpoint(out: Path, model: str, dataset: DataSet, training: Training, resume: bool) -> Path | None:
    """The checkpoint to go on from, None for a new training. Raises BadInput."""
    record = out / RECORD
    if not resume:
        if _first() and out.exists() and any(out.iterdir() if out.is_dir() else [out]):
            raise BadInput(f"{out} is there already: name a new folder, or go on with --resume.")
        return None
    if not record.is_file():
        raise BadInput(f"{out} holds no training to go on with: start it without --resume.")
    told = json.loads(record.read_text("utf-8"))
    asked = training.options()
    differ = [
        f"{name} was {told['options'].get(name)}, now {value}"
        for name, value in asked.items()
        if name not in FREE and told["options"].get(name) != value
    ]
    if told["data_sha256"] != dataset.sha256:
        differ.append("the data are others")
    if told["model"] != model:
        differ.append(f"the model was {told['model']}")
    if differ:
        raise BadInput(f"{out} was started otherwise ({'; '.join(differ)}): use the same options, or a new folder.")
    found = sorted((out / "checkpoints").glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    whole = [path for path in found if (path / "trainer_state.json").is_file()]
    if not whole:
        raise BadInput(f"{out} holds no checkpoint yet (one comes every {training.save_every} steps): start it anew.")
    return whole[-1]


def _trained(
    model: str, folder: Path, dataset: DataSet, training: Training, out: Path, checkpoint: Path | None, tell: Tell
) -> Trained:
    import time

    import torch

    from belie.respondents.local.model import find_device, find_dtype, load, weights_sha256

    if training.threads:
        torch.set_num_threads(training.threads)
    shared = int(os.environ.get("WORLD_SIZE", "1")) > 1  # several processes: each trainer places its own share
    device = torch.device("cpu") if shared else find_device(training.device)
    torch.manual_seed(training.seed)
    loaded = load(folder, device, find_dtype(training.dtype, find_device(None) if shared else device))
    tokenizer = loaded.tokenizer
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    columns = COLUMNS[training.method]
    parts, too_long = [], 0
    for part in (dataset.train, dataset.test):
        # a round has its own prompt, and ends where it grows too long
        fitting = [one for one in part if training.episodes or _length(one, tokenizer) <= training.max_length]
        too_long += len(part) - len(fitting)
        parts.append(fitting)
    if not parts[0]:
        raise BadInput(f"No example has {training.max_length} tokens or fewer: allow more with --max-length.")
    record: dict[str, Any] = {
        "training_version": TRAINING_VERSION,
        "rewards_version": REWARDS_VERSION if training.method == "grpo" else None,
        "name": run_name(dataset, training, out),
        "model": model,
        "method": training.method,
        "recipe": dataset.recipe,
        "warning": warning(dataset.recipe),
        "options": training.options(),
        "dtype": str(loaded.model.dtype).removeprefix("torch."),
        "device": str(device),
        "weights_sha256": weights_sha256(folder),
        "data": str(dataset.path),
        "data_sha256": dataset.sha256,
        "split": dataset.split.to_json(),
        "examples": {"train": len(parts[0]), "test": len(parts[1]), "too_long": too_long},
        "environment": {name: version(name) for name in _PACKAGES} | {"python": platform.python_version()},
        "log": [],
    }
    if _first():
        files.make_folder(out)
        write_record(out, record)
        mark(out, dataset.recipe)
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(out / "tensorboard")
    with _hushed():
        trainer = _trainer(loaded.model, tokenizer, parts[0], columns, dataset, training, out, record["name"], tell)
        began = time.monotonic()
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        seconds = time.monotonic() - began
    log = tuple(_plain(entry) for entry in trainer.state.log_history if "train_runtime" not in entry)
    trainer.save_model(str(out))
    if _first():
        write_record(out, {**record, "log": list(log), "seconds": round(seconds, 1)})
        mark(out, dataset.recipe)
        write_card(out, record)
    return Trained(out, log, seconds, too_long)


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Without the bars and the notices about coming versions that datasets, TRL and transformers print."""
    import datasets

    from belie.models.conversion import quiet

    bars = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        with quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        if not bars:
            datasets.enable_progress_bars()


def run_name(dataset: DataSet, training: Training, out: Path) -> str:
    """What a training is called wherever it is logged: recipe and method are in it."""
    return f"belie-{dataset.recipe}-{training.method}-{out.name}"


def _length(example: Example, tokenizer: Any) -> int:
    """Tokens of the longest conversation of an example."""
    ends = [example[name] for name in ("completion", "chosen", "rejected") if name in example] or [[]]
    lengths = []
    for end in ends:
        text = tokenizer.apply_chat_template([*example["prompt"], *end], tokenize=False)
        lengths.append(len(tokenizer(text, add_special_tokens=False)["input_ids"]))
    return max(lengths)


def _trainer(
    model: Any,
    tokenizer: Any,
    examples: Sequence[Example],
    columns: Sequence[str],
    dataset: DataSet,
    training: Training,
    out: Path,
    name: str,
    tell: Tell,
) -> Any:
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import PrinterCallback, TrainerCallback
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer
    from trl.trainer.kto_config import KTOConfig
    from trl.trainer.kto_trainer import KTOTrainer
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    class Teller(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:  # noqa: ARG002
            if state.is_world_process_zero and logs and "train_runtime" not in logs:
                tell({"step": state.global_step, "steps": state.max_steps, **_plain(logs)})

    rows = Dataset.from_list([{column: one[column] for column in columns} for one in examples])
    lora = LoraConfig(
        r=training.rank,
        lora_alpha=training.alpha,
        lora_dropout=0.0,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    common: dict[str, Any] = {
        "output_dir": str(out / "checkpoints"),
        "run_name": name,
        "max_steps": training.steps,
        "per_device_train_batch_size": training.batch,
        "gradient_accumulation_steps": training.accumulate,
        "learning_rate": training.learning_rate,
        "lr_scheduler_type": "constant",
        "logging_steps": 1,
        "save_steps": training.save_every,
        "save_total_limit": 2,
        "report_to": list(training.report_to) or "none",
        "seed": training.seed,
        "data_seed": training.seed,
        "bf16": False,
        "use_cpu": training.device == "cpu",
        "gradient_checkpointing": training.checkpointing,
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    }
    if training.method != "sft" and training.beta is not None:
        common["beta"] = training.beta
    made: dict[str, Any] = {
        "model": model,
        "train_dataset": rows,
        "processing_class": tokenizer,
        "peft_config": lora,
        "callbacks": [Teller()],
    }
    if training.method == "grpo":
        scenes = _scenes(examples, dataset)
        if training.episodes:
            made["rollout_func"] = _episodes(examples, scenes, dataset, training)
            rewards: Any = [earned]
        else:
            rewards = functions(examples, training.reward, dataset.recipe, training.judge, scenes)
        own = {"num_generations": training.generations, "max_completion_length": training.completion}
        config = GRPOConfig(temperature=training.temperature, **own, **common)
        trainer = GRPOTrainer(args=config, reward_funcs=rewards, **made)
    else:
        maker, settings = {
            "sft": (SFTTrainer, SFTConfig),
            "dpo": (DPOTrainer, DPOConfig),
            "kto": (KTOTrainer, KTOConfig),
        }[training.method]
        trainer = maker(args=settings(max_length=training.max_length, **common), **made)
    trainer.remove_callback(PrinterCallback)
    return trainer


def _episodes(examples: Sequence[Example], scenes: Mapping[str, Any], dataset: DataSet, training: Training) -> Episodes:
    """The rounds that these prompts stand for. Raises BadInput where some are no cases."""
    if not all(one.get("case") for one in examples):
        raise BadInput(
            f"{dataset.path} holds questions of CSQ: episodes are rounds of KnownLie, make data of those alone."
        )
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # its notice that custom rollouts may change
    cases = {prompt_key(one["prompt"]): (scenes[one["case"]], one["condition"]) for one in examples}
    return Episodes(
        cases,
        dataset.recipe,
        training.customer or "",
        training.judge or "",
        turns=training.turns,
        most=training.max_length,
        each=training.completion,
        temperature=training.temperature,
    )


def _scenes(examples: Sequence[Example], dataset: DataSet) -> dict[str, Any]:
    """The scenes of the cases that are prompted. Raises BadInput where their packs are gone."""
    if not any(one.get("case") for one in examples):
        return {}
    from belie.knownlie.scene import scene_of
    from belie.knownlie.task import load_packs

    names = {str(name) for source in dataset.about["sources"] for name in source.get("packs") or ()}
    packs = load_packs(sorted(names))
    return {f"{pack.id}/{case.id}": scene_of(pack, case) for pack in packs for case in pack.cases}


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers that JSON can hold; what is not finite becomes None."""
    told = {}
    for name, value in entry.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            told[name] = value if math.isfinite(value) else None
        elif isinstance(value, str):
            told[name] = value
    return told
