// `node scripts/checks/install/engine-check.mjs PACKAGE`: searches random vectors with the native engine of an installed package, by their int8 codes,
// and compares rows and scores with the search in TypeScript. Prints one line of JSON. npm run check -- install runs it on emulated processors.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [installed] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(resolve(installed), 'dist', 'src', path)).href);
const { loadKernel } = await load('engine/native/kernel.js');
const { CodesWriter } = await load('engine/vectors/codes-writer.js');
const { FlatIndexWriter } = await load('engine/vectors/flat-index-writer.js');
const { openFlatIndex } = await load('engine/vectors/flat-index.js');
const { openReferenceIndex } = await load('engine/reference/reference-index.js');

const [rows, dimension, count, k] = [2000, 96, 20, 10];
const loaded = loadKernel();
if (!loaded.ok) throw new Error(loaded.reason);
const folder = mkdtempSync(join(tmpdir(), 'trawl-engine-'));
try {
  const values = numbers(rows * dimension, 1);
  const shape = { metric: 'inner-product', dimension };
  const vectors = await FlatIndexWriter.create(join(folder, 'vectors.faiss'), { rows, ...shape });
  await vectors.append(values);
  const { segment } = await vectors.finish();
  const codes = join(folder, 'codes.i8');
  const writer = new CodesWriter(codes, shape, loaded.kernel);
  await writer.append(values);
  await writer.finish();
  const plain = { ...shape, rows, shards: [{ firstRow: 0, rows, segments: [segment] }] };
  const coded = { ...plain, shards: [{ ...plain.shards[0], codes }] };
  const request = { queries: numbers(count * dimension, 2), count, k };
  const [native, reference] = [await openFlatIndex(coded, loaded.kernel), await openReferenceIndex(plain)];
  const [found, expected] = [await native.search(request), await reference.search(request)];
  const text = ({ counts, rows: places, scores }) => JSON.stringify([[...counts], [...places], [...scores]]);
  const { origin, isa } = loaded.kernel;
  const machine = `${process.platform} ${process.arch}`;
  process.stdout.write(
    `${JSON.stringify({ machine, origin, isa, equal: text(found) === text(expected), hits: count * k })}\n`,
  );
  await Promise.all([native.close(), reference.close()]);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Uniform numbers from -1 to 1 of a linear congruential generator. */
function numbers(length, seed) {
  let state = BigInt(seed);
  return Float32Array.from({ length }, () => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number(state >> 40n) / 2 ** 23 - 1;
  });
}
