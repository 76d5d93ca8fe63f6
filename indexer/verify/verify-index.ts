import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest, vectorSpace } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE } from '../../src/index/manifest/shard-manifest.ts';
import { type OpenedShard, openShard, readLiveRows, within } from '../../src/search/opening/index-directory.ts';
import { checkFile } from '../../src/search/opening/shard-checks.ts';
import { IndexVerifier, type VerifyOptions, type VerifyReport } from './index-verifier.ts';
import { deletedFieldProblems, lexicalHeaderProblems, lexicalOfDeleted, lexicalOfShard } from './verify-lexical.ts';
import { checksumProblems, problem, problemOf, type VerifyProblem } from './verify-problem.ts';

/**
 * Checks an index: the checksum of every file, SQLite's pages, the content hash, every bound of the codes, that vectors are
 * finite, every posting, the deleted rows and the counts. Embeds and analyses a sample of passages again, to check that they
 * belong to the vectors and inverted indexes. Collects all problems, so that one damaged file does not hide another.
 *
 * @throws TrawlError INDEX_NOT_FOUND; CANCELLED. A damaged manifest is reported as a problem.
 */
export async function verifyIndex(path: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  const folder = resolve(path);
  const problems: VerifyProblem[] = [];
  const manifest = openManifest(folder, problems);
  if (manifest === undefined) return { problems, notChecked: [], rows: 0, shards: 0, sample: null, analysed: null };
  const notChecked = withoutChecksum(join(folder, INDEX_MANIFEST_FILE));
  const shards: OpenedShard[] = [];
  for (const entry of manifest.shards) {
    throwIfCancelled(options.signal);
    const file = join(within(folder, entry.path), SHARD_MANIFEST_FILE);
    try {
      shards.push(openShard(folder, manifest, entry));
      notChecked.push(...withoutChecksum(file));
    } catch (error) {
      problems.push(problemOf(error, file));
      notChecked.push(
        `${within(folder, entry.path)}: the other files of the shard were not checked, because the shard could not be opened.`,
      );
    }
  }
  const deletedTexts = lexicalOfDeleted(folder, manifest);
  problems.push(
    ...(await deletedRowsProblems(folder, manifest)),
    ...(await deletedTextsProblems(folder, manifest, options)),
    ...deletedFieldProblems(folder, manifest),
    ...[...shards.flatMap((shard) => lexicalOfShard(shard.folder, shard.manifest)), ...deletedTexts].flatMap(
      lexicalHeaderProblems,
    ),
  );
  const counts = { rows: manifest.rows, shards: manifest.shards.length };
  if (options.quick === true) return { problems, notChecked, ...counts, sample: null, analysed: null };
  const verifier = new IndexVerifier(shards, deletedTexts, options);
  const isRequired = options.requireEncoder === true && (options.sample ?? 0) > 0;
  const required = isRequired ? await options.openEncoder?.(folder, manifest) : undefined;
  try {
    for (const shard of shards) await verifier.verifyShard(shard);
    for (const { path } of deletedTexts) await verifier.verifyLexical(path);
    const analysed = await verifier.verifyWords(manifest);
    const sample = await verifier.verifySample(folder, manifest, required);
    return {
      problems: [...problems, ...verifier.problems],
      notChecked: [...notChecked, ...verifier.notChecked],
      ...counts,
      sample,
      analysed,
    };
  } finally {
    await required?.close();
  }
}

function openManifest(folder: string, problems: VerifyProblem[]): IndexManifest | undefined {
  const file = join(folder, INDEX_MANIFEST_FILE);
  try {
    const manifest = readIndexManifest(folder);
    const space = vectorSpace(manifest);
    if (space !== undefined && space.model.dimension !== space.dimension) {
      const found = `the dimension is ${manifest.dimension}, but the model's is ${space.model.dimension}`;
      problems.push(problem(file, found));
    }
    return manifest;
  } catch (error) {
    if (error instanceof TrawlError && error.code === 'INDEX_NOT_FOUND') throw error;
    problems.push(problemOf(error, file));
    return undefined;
  }
}

function withoutChecksum(file: string): string[] {
  const has = Object.hasOwn(JSON.parse(readFileSync(file, 'utf8')) as object, 'checksum');
  return has ? [] : [`${file}: it has no checksum, so changes to it cannot be detected.`];
}

async function deletedRowsProblems(folder: string, manifest: IndexManifest): Promise<VerifyProblem[]> {
  if (manifest.tombstones === null) return [];
  const { path, sha256, rows } = manifest.tombstones;
  const file = within(folder, path);
  try {
    const liveRows = readLiveRows(folder, manifest);
    const problems = await checksumProblems(file, sha256);
    const deleted = manifest.rows - liveRows.count();
    if (deleted !== rows) problems.push(problem(file, `${deleted} rows are deleted, the manifest says ${rows}`));
    for (let row = manifest.rows; row < 8 * liveRows.bytes.length; row++) {
      if ((liveRows.bytes[Math.floor(row / 8)]! & (1 << (row % 8))) === 0) {
        problems.push(problem(file, `row ${row} is deleted, but the index has only ${manifest.rows} rows`));
      }
    }
    return problems;
  } catch (error) {
    return [problemOf(error, file)];
  }
}

/** The files of the inverted indexes over the texts of the deleted rows. */
async function deletedTextsProblems(
  folder: string,
  { bm25 }: IndexManifest,
  { quick, signal }: VerifyOptions,
): Promise<VerifyProblem[]> {
  const problems: VerifyProblem[] = [];
  for (const { path, bytes, sha256 } of bm25?.deleted ?? []) {
    const file = within(folder, path);
    try {
      checkFile(file, bytes);
      if (quick !== true) problems.push(...(await checksumProblems(file, sha256, { signal })));
    } catch (error) {
      problems.push(problemOf(error, file));
    }
  }
  return problems;
}
