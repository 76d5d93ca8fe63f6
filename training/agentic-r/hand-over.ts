import { TrawlError } from '../../src/base/errors.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import type { FoundPassage } from '../../src/search/retriever.ts';
import { idField, objectsField, readItems, stringField } from '../trajectories/read-items.ts';
import { readCandidates } from './candidates-file.ts';

export type HandOverCounts = Awaited<ReturnType<typeof handOver>>;

interface HandOverOptions {
  readonly candidates: string;
  readonly dataset: string;
  /** Sub-answers by trajectory, one for each round. */
  readonly subanswers: ReadonlyMap<string, readonly string[]> | undefined;
  readonly rows: number;
  readonly passages: (chosen: RowBitmap) => AsyncIterable<FoundPassage>;
  readonly writeRound: (line: string) => Promise<void>;
  readonly writePassage: (line: string) => Promise<void>;
  readonly signal?: AbortSignal;
}

/**
 * Writes what a judge of utilities needs: one line for each round with candidates, and the passages of all rounds, so that nobody loads the
 * whole corpus. Memory: a bit for each row of the index.
 *
 * @throws TrawlError CORPUS_BAD_LINE; INDEX_FILE_FOREIGN for a candidate that is not a row of the index.
 */
export async function handOver(options: HandOverOptions) {
  const chosen = new RowBitmap(options.rows);
  const rounds = await writeRounds(options, chosen);
  let passages = 0;
  for await (const { row, document } of options.passages(chosen)) {
    const { id, contents } = documentFields(document);
    await options.writePassage(`${JSON.stringify({ id: String(row), contents, corpus_id: id })}\n`);
    passages += 1;
  }
  if (passages < chosen.count()) {
    throw foreign(`${chosen.count() - passages} candidates of ${options.candidates} are deleted rows of the index`);
  }
  return { ...rounds, passages };
}

async function writeRounds(
  { candidates, dataset, subanswers, writeRound, rows, signal }: HandOverOptions,
  chosen: RowBitmap,
) {
  let [rounds, withoutCandidates, withoutSubanswer] = [0, 0, 0];
  for await (const { id, question, golden_answers, trajectory, place } of readCandidates(candidates, { signal })) {
    const answers = subanswers?.get(id);
    if (answers !== undefined && answers.length !== trajectory.length) {
      throw new TrawlError(
        'CORPUS_BAD_LINE',
        `${place}: the file of sub-answers has ${answers.length} for the ${trajectory.length} rounds of ${JSON.stringify(id)}. Use the file that step 3-0 made from the same trajectories.`,
      );
    }
    const history: string[] = [];
    for (const [i, { round_index, reasoning_context, current_query, candidate_passage_ids }] of trajectory.entries()) {
      for (const row of candidate_passage_ids) {
        if (row >= rows) throw foreign(`${place} has the candidate ${row}, but the index has ${rows} rows`);
        chosen.add(row);
      }
      if (candidate_passage_ids.length === 0) withoutCandidates += 1;
      else {
        // The short fact that the query looks for, from step 3-0.
        const subanswer = answers?.[i] ?? null;
        if (subanswer === null) withoutSubanswer += 1;
        const round = {
          dataset,
          id,
          round_index,
          question,
          golden_answers,
          history_queries: history,
          current_query,
          subanswer,
          reasoning_context,
          // Ids of passages.jsonl, as the keys of `docid_score` must be.
          passage_ids: candidate_passage_ids.map(String),
        };
        await writeRound(`${JSON.stringify(round)}\n`);
        rounds += 1;
      }
      history.push(current_query);
    }
  }
  return {
    rounds,
    /** Rounds without candidates, which are not handed over. */
    withoutCandidates,
    /** Rounds without sub-answer, if a file of sub-answers is given. */
    withoutSubanswer: subanswers && withoutSubanswer,
  };
}

function foreign(reason: string): TrawlError {
  return new TrawlError('INDEX_FILE_FOREIGN', `${reason}. Use the index that the candidates were searched in.`);
}

/**
 * Reads the sub-answers of step 3-0 by trajectory: `{"id", "query_subanswer_list": [{"query", "subanswer"}]}`. The last line of an id
 * counts.
 *
 * @throws TrawlError CORPUS_BAD_LINE, CORPUS_NOT_FOUND.
 */
export async function readSubanswers(
  file: string,
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const answers = new Map<string, readonly string[]>();
  for await (const item of readItems(file, { signal })) {
    const list = objectsField(item, 'query_subanswer_list').map((answer) => stringField(answer, 'subanswer'));
    answers.set(idField(item, 'id'), list);
  }
  return answers;
}
