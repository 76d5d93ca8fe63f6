import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { passagesOf } from '../../indexer/export/index-rows.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { formatCount, formatNumberOf } from '../../src/base/format.ts';
import { readReport } from '../../src/base/system/output-report.ts';
import { PartialFile } from '../../src/base/system/partial-file.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import type { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import type { FoundPassage, SearchSource } from '../../src/search/retriever.ts';
import { handOver, readSubanswers } from '../../training/agentic-r/hand-over.ts';
import { openServer, SERVED_INDEX_OPTION, SERVER_OPTIONS, withFolder } from '../open/search-source.ts';
import * as option from '../options/option.ts';
import { EXIT } from '../program/command.ts';
import { DATASET_OPTION, datasetOf, defineAction, OUT_OPTIONS, OVERWRITE_OPTION, requiredOut } from './action.ts';

/** What steps 3-0 to 3-2 need beside the language models. */
export const handOverAction = defineAction({
  arguments: ['index', 'candidates'],
  options: {
    ...OUT_OPTIONS,
    overwrite: OVERWRITE_OPTION,
    ...SERVER_OPTIONS,
    index: SERVED_INDEX_OPTION,
    dataset: DATASET_OPTION,
    subanswers: option.text(
      'FILE',
      'For hand-over: the sub-answers of step 3-0 ({"id", "query_subanswer_list"}), to put into the rounds.',
    ),
  },
  async run({ options, given, positionals, signal, out: print, note }) {
    const [folder, candidates] = withFolder(positionals, options, given, 2);
    const out = requiredOut(options.out, 'hand-over', 'hand-over/hotpotqa');
    const server =
      folder === undefined ? await openServer(options, { served: options.index, signal, note }) : undefined;
    const directory = folder === undefined ? undefined : openIndexDirectory(folder);
    const { generation, rows } = server?.info ?? directory!.manifest;
    checkGeneration(candidates!, folder ?? server!.server.url, generation);
    const subanswers = options.subanswers === undefined ? undefined : await readSubanswers(options.subanswers, signal);
    await mkdir(out, { recursive: true }).catch((error: unknown) => {
      throw writeFailure(error, out);
    });
    const files: PartialFile[] = [];
    try {
      const rounds = await PartialFile.create(join(out, 'rounds.jsonl'), options.overwrite);
      files.push(rounds);
      const passages = await PartialFile.create(join(out, 'passages.jsonl'), options.overwrite);
      files.push(passages);
      const counts = await handOver({
        candidates: candidates!,
        dataset: datasetOf(options.dataset, candidates!),
        subanswers,
        rows,
        passages: (kept) =>
          server === undefined ? passagesOf(directory!, { kept, signal }) : passagesFrom(server, kept, signal),
        writeRound: (line) => rounds.write(line),
        writePassage: (line) => passages.write(line),
        signal,
      });
      await passages.publish();
      await rounds.publish();
      if (options.json) print(JSON.stringify({ out, ...counts }));
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

/** Passages of one look-up. */
const ROWS_PER_CALL = 1000;

async function* passagesFrom(source: SearchSource, kept: RowBitmap, signal: AbortSignal) {
  let rows: string[] = [];
  for (const row of kept) {
    rows.push(String(row));
    if (rows.length < ROWS_PER_CALL) continue;
    yield* await passages();
    rows = [];
  }
  yield* await passages();

  async function passages(): Promise<readonly FoundPassage[]> {
    return (await source.find({ by: 'row', keys: rows, limit: 1, signal })).found.flat();
  }
}

/** @throws TrawlError INDEX_FILE_FOREIGN if the report of the candidates names another generation. Without a report nothing is checked. */
function checkGeneration(candidates: string, index: string, generation: string): void {
  const found = readReport(candidates)?.settings?.['generation'];
  if (found === undefined || found === generation) return;
  throw new TrawlError(
    'INDEX_FILE_FOREIGN',
    `${candidates} was made with the generation ${String(found)} of its index; ${index} has the generation ${generation}, whose row numbers can be others. Use that index, or make the candidates again.`,
  );
}
