"""lm-evaluation-harness as a worker process: told on stdin to run, it answers on stdout how long that took.

``python harness.py http BASE_URL CONCURRENT`` or ``python harness.py hf FOLDER THREADS BATCH``. The first line of stdin
is the path of a JSON file with the work; every further line is one run. Runs in the peers' own environment, with its
own classes called as its evaluator calls them; loading the model, tasks, metrics and result files are left out of the
time, which favours the harness.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
from importlib.metadata import version


def main() -> None:
    kind, target, many, *rest = sys.argv[1:]
    told = sys.stdout
    with open(sys.stdin.readline().strip(), encoding="utf-8") as file:
        work = json.load(file)
    with contextlib.redirect_stdout(sys.stderr):
        run = _http(target, int(many), work) if kind == "http" else _local(target, int(many), int(rest[0]), work)
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

    def run() -> int:
        return len(model.generate_until(requests, disable_tqdm=True))

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
