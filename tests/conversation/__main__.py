"""Record anew what Kafka answers: `python -m tests.conversation [script ...]`, all scripts unless some are named."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.conversation import brokers, recording


def main(names: list[str]) -> None:
    answers = recording.load() if recording.RECORDING.exists() else {}
    answers = {script: said for script, said in answers.items() if script in recording.SCRIPTS}
    with tempfile.TemporaryDirectory() as work_dir, brokers.kafka(Path(work_dir)) as port:
        for script in names or recording.SCRIPTS:
            answers[script] = recording.run(script, port)
            print(f"{script}: {len(answers[script])} answers")
    recording.save(answers)


if __name__ == "__main__":
    main(sys.argv[1:])
