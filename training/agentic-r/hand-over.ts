import { parseJson } from '../../corpus/parse-json.ts';
import { bug, TrawlError } from '../../src/base/errors.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { contentsOf } from '../../src/index/passages/contents.ts';
import { idColumnOf } from '../../src/index/passages/id-column.ts';
import { idField, objectsField, stringField } from '../trajectories/item-fields.ts';
import { readItems } from '../trajectories/read-items.ts';
import { readCandidates } from './read-candidates.ts';

/** A round for whoever judges its candidates. */
interface HandedRound {
  readonly dataset: string;
  readonly id: string;
  readonly round_index: number;
  readonly question: string;
  readonly golden_answers: readonly string[];
  readonly history_queries: readonly string[];
  readonly current_query: string;
  /** The short fact that the query looks for, from step 3-0; null if there is none. */
  readonly subanswer: string | null;
  readonly reasoning_context: string;
  /** Ids of passages.jsonl: rows, as the keys of `docid_score` must be. */
  readonly passage_ids: readonly string[];
}

export interface HandOverCounts {
  readonly rounds: number;
  /** Distinct candidates of all rounds. */
  readonly passages: number;
  /** Rounds without candidates, which are not handed over. */
  readonly withoutCandidates: number;
  /** Rounds without sub-answer, if a file of sub-answers is given. */
  readonly withoutSubanswer: number | undefined;
}

/** A passage of the index. */
export interface IndexedPassage {
  readonly row: number;
  readonly document: string;
}

interface HandOverOptions {
  readonly candidates: string;
  readonly dataset: string;
  /** Sub-answers by trajectory, one for each round. */
  readonly subanswers: ReadonlyMap<string, readonly string[]> | undefined;
  /** Rows of the index. */
  readonly rows: number;
  /** The passages of these rows. */
  readonly passages: (chosen: RowBitmap) => AsyncIterable<IndexedPassage>;
  readonly writeRound: (line: string) => Promise<void>;
  readonly writePassage: (line: string) => Promise<void>;
  readonly signal?: AbortSignal;
}

/**
 * Writes what a judge of utilities needs: one line for each round with candidates, and the passages of all rounds, so that nobody loads the whole corpus.
 * Memory: a bit for each row of the index.
 *
 * @throws TrawlError CORPUS_BAD_LINE; INDEX_FILE_FOREIGN for a candidate that is not a row of the index.
 */
export async function handOver(options: HandOverOptions): Promise<HandOverCounts> {
  const chosen = new RowBitmap(options.rows);
  const rounds = await writeRounds(options, chosen);
  let passages = 0;
  for await (const { row, document } of options.passages(chosen)) {
    await options.writePassage(`${JSON.stringify(handedPassage(row, document))}\n`);
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
): Promise<Omit<HandOverCounts, 'passages'>> {
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
    for (const [i, round] of trajectory.entries()) {
      for (const row of round.candidate_passage_ids) {
        if (row >= rows) throw foreign(`${place} has the candidate ${row}, but the index has ${rows} rows`);
        chosen.add(row);
      }
      if (round.candidate_passage_ids.length === 0) {
        history.push(round.current_query);
        withoutCandidates += 1;
        continue;
      }
      const subanswer = answers?.[i] ?? null;
      if (subanswer === null) withoutSubanswer += 1;
      const handed: HandedRound = {
        dataset,
        id,
        round_index: round.round_index,
        question,
        golden_answers,
        history_queries: history,
        current_query: round.current_query,
        subanswer,
        reasoning_context: round.reasoning_context,
        passage_ids: round.candidate_passage_ids.map(String),
      };
      await writeRound(`${JSON.stringify(handed)}\n`);
      history.push(round.current_query);
      rounds += 1;
    }
  }
  return { rounds, withoutCandidates, withoutSubanswer: subanswers === undefined ? undefined : withoutSubanswer };
}

function handedPassage(row: number, document: string): object {
  const parsed = parseJson(document);
  if (!parsed.ok) throw bug(`a stored document does not parse: ${parsed.reason}`);
  const columns = parsed.value as Record<string, unknown>;
  const id = columns[idColumnOf(columns)] ?? null;
  // An integer id beyond 2^53 is a bigint.
  return { id: String(row), contents: contentsOf(columns) ?? '', ...(id === null ? {} : { corpus_id: String(id) }) };
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
