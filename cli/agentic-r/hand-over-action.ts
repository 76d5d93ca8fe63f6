import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { passagesOf } from '../../export/index-rows.ts';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { writeFailure } from '../../src/system/write-failure.ts';
import { handOver, readSubanswers } from '../../trajectories/agentic-r/hand-over.ts';
import { EXIT } from '../command.ts';
import { formatCount, formatNumberOf } from '../format.ts';
import { defineAction } from './action.ts';
import { checkGeneration } from './check-generation.ts';
import { LineOutput } from './line-output.ts';
import { DATASET_OPTION, datasetOf, OUT_OPTIONS, requiredOut } from './out-options.ts';

/** What steps 3-0 to 3-2 need beside the language models. */
export const handOverAction = defineAction({
  arguments: ['index', 'candidates'],
  options: {
    ...OUT_OPTIONS,
    dataset: DATASET_OPTION,
    subanswers: {
      type: 'string',
      value: 'FILE',
      help: 'For hand-over: the sub-answers of step 3-0 ({"id", "query_subanswer_list"}), to put into the rounds.',
    },
  },
  async run({ options: given, positionals, signal, out: print, note }) {
    const [folder, candidates] = positionals;
    const out = requiredOut(given.out, 'hand-over', 'hand-over/hotpotqa');
    const directory = openIndexDirectory(folder!);
    checkGeneration(candidates!, folder!, directory.manifest.generation);
    const subanswers = given.subanswers === undefined ? undefined : await readSubanswers(given.subanswers, signal);
    await mkdir(out, { recursive: true }).catch((error: unknown) => {
      throw writeFailure(error, out);
    });
    const files: LineOutput[] = [];
    try {
      const rounds = await LineOutput.create(join(out, 'rounds.jsonl'), given.overwrite);
      files.push(rounds);
      const passages = await LineOutput.create(join(out, 'passages.jsonl'), given.overwrite);
      files.push(passages);
      const counts = await handOver({
        candidates: candidates!,
        dataset: datasetOf(given.dataset, candidates!),
        subanswers,
        rows: directory.manifest.rows,
        passages: (kept) => passagesOf(directory, { kept, signal }),
        writeRound: (line) => rounds.write(line),
        writePassage: (line) => passages.write(line),
        signal,
      });
      await passages.publish();
      await rounds.publish();
      if (given.json) print(JSON.stringify({ out, ...counts }));
      else {
        print(`${join(out, 'rounds.jsonl')}: ${formatNumberOf(counts.rounds, 'round')}`);
        print(`${join(out, 'passages.jsonl')}: ${formatNumberOf(counts.passages, 'passage')}`);
        const { withoutCandidates, withoutSubanswer = 0 } = counts;
        if (withoutCandidates > 0) {
          note(`Not handed over, because they have no candidates: ${formatNumberOf(withoutCandidates, 'round')}.`);
        }
        if (withoutSubanswer > 0) note(`${formatCount(withoutSubanswer)} rounds have no sub-answer.`);
      }
      return EXIT.ok;
    } finally {
      for (const file of files) await file.discard();
    }
  },
});
