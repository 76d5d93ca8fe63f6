import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DEFAULT_PASSAGE_TEMPLATE } from '../../corpus/passage-template.ts';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { openVectorFiles } from '../../indexer/vector-files/open-vector-files.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { NoOpEncoder } from '../no-op-encoder.ts';
import { decodeNpy } from '../vectors/npy.ts';

/**
 * Makes an index of vectors in place, as `trawl import` does. There are no texts and no model, so a passage has its id as its text and
 * only `trawl search --query-vectors` can search it.
 *
 * @param vectors a .npy file.
 * @param ids a file whose lines begin with the ids of the vectors.
 * @returns the folder of the index, in `folder`.
 */
export async function importVectors(
  vectors: string,
  ids: string,
  folder: string,
  signal?: AbortSignal,
): Promise<string> {
  const corpus = join(folder, 'corpus.jsonl');
  await writeLines(corpus, await idsOf(ids), (id) => ({ id, contents: id }));
  const { columns: dimension } = decodeNpy(await readFile(vectors), vectors);
  const kernel = loadKernel();
  const index = await buildIndex({
    corpus: [corpus],
    corpusOptions: {},
    encoder: new NoOpEncoder(dimension),
    vectors: { set: await openVectorFiles([vectors], { dimension }), use: 'adopt', metric: 'inner-product' },
    kernel: kernel.ok ? kernel.kernel : undefined,
    passageTemplate: DEFAULT_PASSAGE_TEMPLATE,
    uniqueIds: true,
    out: join(folder, 'index'),
    overwrite: true,
    onProgress: () => undefined,
    signal,
  });
  return index.folder;
}

/** Writes a file of queries with these ids, in their order, and returns its path. Their texts are not read beside vectors. */
export async function queriesOfIds(ids: string, folder: string): Promise<string> {
  const path = join(folder, 'queries.jsonl');
  await writeLines(path, await idsOf(ids), (id) => ({ id, question: id }));
  return path;
}

/** The first words of the lines of a file. */
async function idsOf(path: string): Promise<string[]> {
  return (await readFile(path, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/\s/, 1)[0]!);
}

async function writeLines(path: string, ids: readonly string[], entry: (id: string) => object): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, ids.map((id) => `${JSON.stringify(entry(id))}\n`).join(''));
}
