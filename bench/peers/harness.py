"""lm-evaluation-harness as a worker process: told on stdin to run, it answers on stdout how long that took.

``python harness.py http|evaluate BASE_URL CONCURRENT``, or ``… hf FOLDER THREADS BATCH``. The first line of stdin is
the path of a JSON file with the work; every further line is one run. Runs in the peers' own environment. With ``http``
and ``hf`` its model classes are called as its evaluator calls them: loading, tasks, metrics and result files are left
out of the time, which favours the harness. ``evaluate`` is all of its ``simple_evaluate`` but imports and bootstrap.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import tempfile
import time
from importlib.metadata import version


def main() -> None:
    kind, target, many, *rest = sys.argv[1:]
    told = sys.stdout
    with open(sys.stdin.readline().strip(), encoding="utf-8") as file:
        work = json.load(file)
    with contextlib.redirect_stdout(sys.stderr):
        if kind == "hf":
            run = _local(target, int(many), int(rest[0]), work)
        else:
            run = (_http if kind == "http" else _evaluated)(target, int(many), work)
    versions = {name: version(name) for name in ("lm_eval", "torch", "transformers", "aiohttp")}
    print(json.dumps({"ready": True, "versions": versions}), file=told, flush=True)
    for _ in sys.stdin:
        with contextlib.redirect_stdout(sys.stderr):
            cpu, start = _cpu(), time.perf_counter()
            results = run()
            seconds, cpu = time.perf_counter() - start, _cpu() - cpu
        print(json.dumps({"seconds": seconds, "cpu_s": cpu, "results": results}), file=told, flush=True)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _http(url: str, concurrent: int, talks: list[list[dict[str, str]]]):
    """Chat completions, one word each: what came back."""
    os.environ.setdefault("OPENAI_API_KEY", "none")
    from lm_eval.api.instance import Instance  # pyright: ignore[reportMissingImports]
    from lm_eval.models.api_models import JsonChatStr  # pyright: ignore[reportMissingImports]
    from lm_eval.models.openai_completions import LocalChatCompletion  # pyright: ignore[reportMissingImports]

    model = LocalChatCompletion(
        base_url=f"{url}/chat/completions",
        model="stub",
        num_concurrent=concurrent,
        tokenizer_backend=None,
        tokenized_requests=False,
    )
    how = {"until": ["\n\n\n"], "max_gen_toks": 16, "do_sample": False}
    requests = [
        Instance("generate_until", {}, (JsonChatStr(json.dumps(talk)), how), number)
        for number, talk in enumerate(talks)
    ]

    def calls() -> int:
        return len(model.generate_until(requests, disable_tqdm=True))

    return calls


def _evaluated(url: str, concurrent: int, talks: list[list[dict[str, str]]]):
    """The same as a user runs it: a task of its own over a file of questions, with its metric, no bootstrap."""
    os.environ.setdefault("OPENAI_API_KEY", "none")
    from lm_eval.evaluator import simple_evaluate  # pyright: ignore[reportMissingImports]

    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "questions.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"question": talk[-1]["content"], "answer": "Yes"}) + "\n" for talk in talks)
    task = {
        "task": "questions",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": path}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": ["\n\n\n"], "max_gen_toks": 16, "do_sample": False},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    told = {"base_url": f"{url}/chat/completions", "model": "stub", "num_concurrent": concurrent}

    def run() -> int:
        found = simple_evaluate(
            "local-chat-completions",
            model_args={**told, "tokenizer_backend": None, "tokenized_requests": False},
            tasks=[task],
            apply_chat_template=True,
            bootstrap_iters=0,
            verbosity="ERROR",
        )
        return len(found["samples"]["questions"])

    return run


def _local(folder: str, threads: int, batch: int, work: dict[str, list[str]]):
    """Log-likelihoods of the answers after each prompt: a list a prompt, one number an answer."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(threads)
    from lm_eval.api.instance import Instance  # pyright: ignore[reportMissingImports]
    from lm_eval.models.huggingface import HFLM  # pyright: ignore[reportMissingImports]

    model = HFLM(pretrained=folder, dtype="bfloat16", device="cpu", batch_size=batch, add_bos_token=False)
    prompts, answers = work["prompts"], work["answers"]
    requests = [
        Instance("loglikelihood", {}, (prompt, answer), number)
        for number, prompt in enumerate(prompts)
        for answer in answers
    ]

    def run() -> list[list[float]]:
        told = [value for value, _ in model.loglikelihood(requests, disable_tqdm=True)]
        return [told[at : at + len(answers)] for at in range(0, len(told), len(answers))]

    return run


if __name__ == "__main__":
    main()
