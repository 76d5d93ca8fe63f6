import {
  idField,
  integerField,
  objectField,
  objectsField,
  shown,
  stringField,
  stringsField,
} from '../trajectories/item-fields.ts';
import { itemError, type ReadItem, type ReadItemsOptions, readItems } from '../trajectories/read-items.ts';
import type { CandidateItem, CandidateRound } from './candidate-item.ts';

/** An item of a candidates file with its place for messages. */
export interface ReadCandidates extends CandidateItem {
  readonly place: string;
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
      trajectory: objectsField(item, 'trajectory').map(parseRound),
      place: item.place,
    };
  }
}

function parseRound(round: ReadItem): CandidateRound {
  return {
    round_index: integerField(round, 'round_index', 1),
    reasoning_context: stringField(round, 'reasoning_context'),
    current_query: stringField(round, 'current_query'),
    candidate_passage_ids: rowsOf(round),
  };
}

/** A search of FAISS that finds too little returns -1, which Agentic-R's step 2 writes. */
function rowsOf({ value, place }: ReadItem): readonly number[] {
  const found = value['candidate_passage_ids'];
  if (!Array.isArray(found)) {
    throw itemError(place, `"candidate_passage_ids" is ${shown(found)}; expected a list of row numbers`);
  }
  const wrong = found.findIndex((row) => !Number.isSafeInteger(row) || row < -1);
  if (wrong === -1) return found.filter((row: number) => row !== -1);
  throw itemError(
    place,
    `"candidate_passage_ids"[${wrong}] is ${shown(found[wrong])}; expected a row number of the index as a number`,
  );
}
