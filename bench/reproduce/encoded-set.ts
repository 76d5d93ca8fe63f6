import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import { contentsOf } from '../../src/index/passages/contents.ts';
import { decodeNpy, encodeNpy } from '../vectors/npy.ts';
import { type QuestionEncoder, questionVectors } from '../vectors/question-vectors.ts';
import type { Measurement } from './measurement.ts';

/** A corpus and its questions, as JSON lines of `{id, contents}` or `{id, title, text}`, and of `{id, question}`. */
export interface SetFiles {
  readonly corpus: string;
  readonly queries: string;
}

/** TREC runs by programs that search vectors, in the order of the table. */
export const VECTOR_RUNS = [
  { name: 'FAISS Flat', file: 'flat.txt' },
  { name: 'FAISS HNSW', file: 'faiss-hnsw.txt' },
  { name: 'usearch HNSW', file: 'usearch-hnsw.txt' },
] as const;

type Entry = Readonly<Record<string, string>>;

/** The objects of a file of JSON lines. */
export async function entriesOf<Line = Entry>(path: string): Promise<Line[]> {
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as Line);
}

/** Writes the vectors of the questions as .npy. */
export async function embedQuestions(
  { queries }: Pick<SetFiles, 'queries'>,
  encoder: QuestionEncoder,
  file: string,
): Promise<void> {
  const texts = (await entriesOf(queries)).map(({ question }) => question!);
  await writeFile(file, encodeNpy(await questionVectors(texts, encoder)));
}

/**
 * Searches given vectors with FAISS and usearch, and resolves to the folder of the VECTOR_RUNS.
 *
 * @param vectors of passages and queries: .npy or a FAISS flat file.
 * @param ids files whose lines begin with them.
 */
export async function searchVectors(
  folder: string,
  vectors: { readonly passages: string; readonly queries: string },
  ids: { readonly passages: string; readonly queries: string },
  run: Pick<Measurement, 'run' | 'python'>,
): Promise<string> {
  await mkdir(folder, { recursive: true });
  const script = join(packageRoot, 'scripts', 'evaluation-runs.py');
  const files = [vectors.passages, ids.passages, vectors.queries, ids.queries];
  await run.run(run.python('flat'), [script, folder, ...files]);
  return folder;
}

/** Writes the ids of a set, a line each. */
export async function writeIds(set: SetFiles, folder: string): Promise<{ passages: string; queries: string }> {
  const files = { passages: join(folder, 'passage-ids.txt'), queries: join(folder, 'query-ids.txt') };
  const lines = (entries: readonly Entry[]): string => entries.map(({ id }) => `${id}\n`).join('');
  await mkdir(folder, { recursive: true });
  await writeFile(files.passages, lines(await entriesOf(set.corpus)));
  await writeFile(files.queries, lines(await entriesOf(set.queries)));
  return files;
}

/**
 * The vectors of questions and passages by the texts that a reranker gets.
 *
 * @param files of the vectors: .npy, in the order of the set's files.
 */
export async function vectorsByText(
  set: SetFiles,
  files: { readonly passages: string; readonly queries: string },
): Promise<Map<string, Float32Array>> {
  const byText = new Map<string, Float32Array>();
  for (const [path, texts] of [
    [files.passages, (await entriesOf(set.corpus)).map((entry) => contentsOf(entry)!)],
    [files.queries, (await entriesOf(set.queries)).map(({ question }) => question!)],
  ] as const) {
    const { columns, values } = decodeNpy(await readFile(path), path);
    for (const [row, text] of texts.entries()) byText.set(text, values.subarray(row * columns, (row + 1) * columns));
  }
  return byText;
}
