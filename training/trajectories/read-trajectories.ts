import { isObject } from '../../src/base/objects.ts';
import { contentsOf } from '../../src/index/passages/contents.ts';
import { idField, objectField, shown, stringField, stringsField } from './item-fields.ts';
import { itemError, type ReadItem, type ReadItemsOptions, readItems } from './read-items.ts';
import type { Search, ShownPassage, Trajectory } from './trajectory.ts';

/**
 * Reads the trajectories that Agentic-R's step 1 writes (`intermediate_data.json`), as a JSON array or as JSON lines: `{"id", "question",
 * "golden_answers", "output": {"prompt", "pred", "retrieval_results": {"0": {"query", "query_for_retrieval", "docs"}}}}`.
 *
 * @throws TrawlError CORPUS_BAD_LINE, CORPUS_NOT_FOUND.
 */
export async function* readTrajectories(
  file: string,
  options: ReadItemsOptions = {},
): AsyncGenerator<Trajectory, void> {
  for await (const item of readItems(file, options)) yield parseTrajectory(item);
}

function parseTrajectory(item: ReadItem): Trajectory {
  const id = idField(item, 'id');
  const { retrieval_results: _, ...output } = objectField(item, 'output');
  return {
    id,
    questionId: id,
    question: stringField(item, 'question'),
    goldenAnswers: stringsField(item, 'golden_answers'),
    searches: searchesOf(item),
    output,
    place: item.place,
  };
}

/** The searches have the keys "0", "1", … in any order. */
function searchesOf(item: ReadItem): Search[] {
  const output = { value: objectField(item, 'output'), place: `${item.place}, output` };
  const results = objectField(output, 'retrieval_results');
  const keys = Object.keys(results);
  return keys.map((_, i) => {
    const found = results[String(i)];
    if (found === undefined) {
      throw itemError(output.place, `"retrieval_results" has ${keys.length} searches, but none with the key "${i}"`);
    }
    const place = `${output.place}, retrieval_results["${i}"]`;
    if (typeof found !== 'object' || found === null) throw itemError(place, `is ${shown(found)}; expected an object`);
    return parseSearch({ value: found as ReadItem['value'], place }, i + 1);
  });
}

function parseSearch(search: ReadItem, turn: number): Search {
  const query = stringField(search, 'query');
  const docs = search.value['docs'] ?? [];
  if (!Array.isArray(docs)) throw itemError(search.place, `"docs" is ${shown(docs)}; expected a list`);
  return {
    query,
    // Older files have the sub-query alone.
    searchedText:
      search.value['query_for_retrieval'] === undefined ? query : stringField(search, 'query_for_retrieval'),
    shown: docs.map((doc, i) => shownPassage(doc, `${search.place}, docs[${i}]`)),
    turn,
    truncated: undefined,
  };
}

/** A row of the corpus: `id` or `docid`, and `contents` or `title` and `text`. */
function shownPassage(doc: unknown, place: string): ShownPassage {
  if (!isObject(doc)) {
    throw itemError(place, `is ${shown(doc)}; expected a passage as an object`);
  }
  const row = { value: doc as ReadItem['value'], place };
  return { id: idField(row, row.value['id'] === undefined ? 'docid' : 'id'), contents: contentsOf(row.value) };
}
