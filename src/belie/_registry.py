"""What Inspect AI finds of Belie: tasks and model providers. Imports and names, nothing else."""

from inspect_ai.model import modelapi

from belie.csq.task import csq as csq
from belie.knownlie.task import knownlie as knownlie


@modelapi(name="belie")
def belie():
    from belie.knownlie.scripted import ScriptedAPI

    return ScriptedAPI
