import { statSync } from 'node:fs';
import { asTrawlError } from '../../src/base/errors.ts';
import { isObject } from '../../src/base/objects.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { contentsOf } from '../../src/index/passages/contents.ts';
import {
  idField,
  itemError,
  jsonType,
  objectField,
  type ReadItem,
  type ReadItemsOptions,
  readItems,
  stringField,
  stringsField,
  unreadable,
} from './read-items.ts';
import type { OpenTrajectories, Search, Trajectory } from './trajectory.ts';

/** @throws TrawlError CORPUS_NOT_FOUND, CANCELLED. */
export async function openTrajectoryFile(file: string, signal: AbortSignal): Promise<OpenTrajectories> {
  const sha256 = await sha256OfFile(file, signal).catch((error: unknown) => {
    throw asTrawlError(error).code === 'CANCELLED' ? error : unreadable(file, error);
  });
  const { size } = statSync(file);
  return {
    sha256,
    read(skip, onShare) {
      let read = 0;
      const onBytes = (bytes: number): void => {
        read += bytes;
        onShare(read / size);
      };
      return readTrajectories(file, { skip, signal, onBytes });
    },
  };
}

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
  for await (const item of readItems(file, options)) {
    const id = idField(item, 'id');
    const { retrieval_results: _, ...output } = objectField(item, 'output');
    yield {
      id,
      questionId: id,
      question: stringField(item, 'question'),
      goldenAnswers: stringsField(item, 'golden_answers'),
      searches: searchesOf(item),
      output,
      place: item.place,
    };
  }
}

/** The searches have the keys "0", "1", … in any order. */
function searchesOf(item: ReadItem): Search[] {
  const output = { value: objectField(item, 'output'), place: `${item.place}, output` };
  const results = objectField(output, 'retrieval_results');
  const keys = Object.keys(results);
  return keys.map((_, i) => {
    const value = results[String(i)];
    if (value === undefined) {
      throw itemError(output.place, `"retrieval_results" has ${keys.length} searches, but none with the key "${i}"`);
    }
    const place = `${output.place}, retrieval_results["${i}"]`;
    if (!isObject(value)) throw itemError(place, `is ${jsonType(value)}; expected an object`);
    const search = { value, place };
    const query = stringField(search, 'query');
    const docs = value['docs'] ?? [];
    if (!Array.isArray(docs)) throw itemError(place, `"docs" is ${jsonType(docs)}; expected a list`);
    return {
      query,
      // Older files have the sub-query alone.
      searchedText: value['query_for_retrieval'] === undefined ? query : stringField(search, 'query_for_retrieval'),
      shown: docs.map((doc, at) => shownPassage(doc, `${place}, docs[${at}]`)),
      turn: i + 1,
      truncated: undefined,
    };
  });
}

/** A row of the corpus: `id` or `docid`, and `contents` or `title` and `text`. */
function shownPassage(doc: unknown, place: string): Search['shown'][number] {
  if (!isObject(doc)) throw itemError(place, `is ${jsonType(doc)}; expected a passage as an object`);
  const id = idField({ value: doc, place }, doc['id'] === undefined ? 'docid' : 'id');
  return { id, contents: contentsOf(doc) };
}
