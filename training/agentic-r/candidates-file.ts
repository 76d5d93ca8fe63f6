import {
  idField,
  integerField,
  itemError,
  jsonType,
  objectField,
  objectsField,
  type ReadItem,
  type ReadItemsOptions,
  readItems,
  stringField,
  stringsField,
} from '../trajectories/read-items.ts';

/** Candidates of each search in Agentic-R. */
export const DEFAULT_CANDIDATES = 20;

/** A round of a trajectory in Agentic-R's file of candidates (step 2). */
export interface CandidateRound {
  /** From 1. */
  readonly round_index: number;
  /** The agent's text up to and with this search; empty where only calls were recorded. */
  readonly reasoning_context: string;
  readonly current_query: string;
  /** Rows of the index, best first. */
  readonly candidate_passage_ids: readonly number[];
}

export interface CandidateItem {
  readonly id: string;
  readonly question: string;
  readonly golden_answers: readonly string[];
  readonly output: Readonly<Record<string, unknown>>;
  readonly trajectory: readonly CandidateRound[];
}

export interface ReadCandidates extends CandidateItem {
  readonly place: string;
}

/** Identifies a round in maps: an id may have any character but NUL. */
export function roundKey(id: string, roundIndex: number): string {
  return `${id}\0${roundIndex}`;
}

/**
 * Reads a file of candidates, Agentic-R's own or one of `trawl agentic-r candidates`: a JSON array or JSON lines.
 *
 * @throws TrawlError CORPUS_BAD_LINE, also for candidates that are not row numbers; CORPUS_NOT_FOUND.
 */
export async function* readCandidates(
  file: string,
  options: ReadItemsOptions = {},
): AsyncGenerator<ReadCandidates, void> {
  for await (const item of readItems(file, options)) {
    yield {
      id: idField(item, 'id'),
      question: stringField(item, 'question'),
      golden_answers: stringsField(item, 'golden_answers'),
      output: objectField(item, 'output'),
      trajectory: objectsField(item, 'trajectory').map((round) => ({
        round_index: integerField(round, 'round_index', 1),
        reasoning_context: stringField(round, 'reasoning_context'),
        current_query: stringField(round, 'current_query'),
        candidate_passage_ids: candidateRows(round),
      })),
      place: item.place,
    };
  }
}

/** Without the -1 that FAISS returns, and step 2 writes, where a search finds too little. */
function candidateRows({ value, place }: ReadItem): readonly number[] {
  const name = 'candidate_passage_ids';
  const found = value[name];
  if (!Array.isArray(found)) throw itemError(place, `"${name}" is ${jsonType(found)}; expected a list of row numbers`);
  const wrong = found.findIndex((row) => !Number.isSafeInteger(row) || row < -1);
  if (wrong === -1) return found.filter((row: number) => row !== -1);
  throw itemError(
    place,
    `"${name}"[${wrong}] is ${jsonType(found[wrong])}; expected a row number of the index as a number`,
  );
}
