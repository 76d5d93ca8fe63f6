import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { throwIfCancelled } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import type { Metric } from '../../engine/metric.ts';
import { type IndexManifest, requireVectors } from '../../index/manifest/index-manifest.ts';
import { type IndexDirectory, openIndexDirectory, within } from '../../search/opening/index-directory.ts';
import { filesName, type HeldPlace, heldPlace, type StorePlace } from '../published/find-publication.ts';
import type { PublishedIndex } from '../published/open-stored.ts';
import {
  type Publication,
  type PublicationPlan,
  planOf,
  readProgress,
  storedRows,
  writeProgress,
  writePublication,
} from '../published/publication.ts';
import { ContentSum, type PublishedRow } from '../published/published-row.ts';
import { FIRST_FILE_PART, type PartStore, type StoredFile, writeFile } from '../published/stored-files.ts';
import { LocalRows } from './local-rows.ts';
import { type VerifiedPublication, verifyPublication } from './verify-publication.ts';

export interface PublishOptions {
  /** A name that is made to name what was published once it is complete. */
  readonly alias: string | undefined;
  /** Rows and questions that are compared at the end. */
  readonly sample: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PublishProgress) => void;
}

export interface PublishProgress {
  readonly step: 'reading the passages' | 'storing rows' | 'indexing' | 'loading' | 'storing files' | 'comparing';
  readonly done: number;
  readonly total: number;
}

export interface PublishReport {
  readonly address: string;
  readonly collection: string;
  readonly rows: number;
  /** Whether an earlier run had stored rows. */
  readonly resumed: boolean;
  /** Whether the collection was complete already. */
  readonly wasComplete: boolean;
  readonly alias: string | null;
  readonly verified: VerifiedPublication;
}

export interface PublishSource {
  readonly directory: IndexDirectory;
  readonly manifest: IndexManifest;
  readonly metric: Metric;
  readonly local: LocalRows;
}

/** How an index is published to a store. `Facts` is the store's description of a collection or index. */
interface PublishTarget<Facts extends { readonly name: string }> {
  readonly place: StorePlace<Facts>;
  /** Bytes of the longest document that a row can have, and of its text that each piece has room for. */
  readonly documentBytes: { readonly most: number; readonly aPiece: number };
  /** Makes files that exist readable. Default: they are. */
  readonly prepareFiles?: () => Promise<void>;
  /** What depends on the store; of the same index in every run. */
  planned(earlier: PublicationPlan | undefined): Promise<Pick<PublicationPlan, 'indexType' | 'keyColumns' | 'words'>>;
  /** @throws TrawlError INDEX_EXISTS if the place has another index, or fields that do not fit. */
  checkHeld(held: HeldPlace<Facts>, plan: PublicationPlan): void;
  /** Creates the collections of rows and of files. */
  create(plan: PublicationPlan): Promise<void>;
  drop(name: string): Promise<void>;
  rowStore(plan: PublicationPlan): RowStore;
  /** Makes stored rows and files searchable. */
  finish(plan: PublicationPlan): Promise<Pick<Publication, 'wordScores'>>;
  /** Why what was published could not be searched completely. */
  problems(publication: Publication): Promise<readonly TrawlError[]>;
  /** Opens it to be compared. Closing it leaves the connection open. */
  open(publication: Publication): Promise<PublishedIndex>;
  /** Makes the written record readable. */
  flushRecord?(): Promise<void>;
  setAlias(alias: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Loads an index into a store. A killed run is resumed by the next one; a complete collection is only checked. The record that makes the
 * collection an index is written last, after everything was compared; the alias is moved after that.
 *
 * @throws TrawlError INDEX_EXISTS if the place has another index or something else; STORE_…, INDEX_…; NOT_SUPPORTED, as for too long
 * documents.
 */
export async function publishIndex<Facts extends { readonly name: string }>(
  folder: string,
  options: PublishOptions,
  connect: (source: PublishSource) => Promise<PublishTarget<Facts>>,
): Promise<PublishReport> {
  const { alias, sample, signal, onProgress } = options;
  const directory = openIndexDirectory(folder);
  const { metric } = requireVectors(folder, directory.manifest);
  const source = { directory, manifest: portable(directory), metric, local: new LocalRows(directory) };
  const { local } = source;
  let target: PublishTarget<Facts> | undefined;
  try {
    target = await connect(source);
    const { place } = target;
    const held = await heldPlace(place, target.prepareFiles);
    const { complete, progress } = held;
    const plan = await makePlan(target, source, complete ?? progress, options);
    target.checkHeld(held, plan);
    if (held.facts === undefined) {
      if (held.hasFiles) await target.drop(filesName(place.name));
      await target.create(plan);
    }
    const publication = complete ?? (await store(target, source, plan, options));
    const [problem] = await target.problems(publication);
    if (problem !== undefined) throw problem;
    onProgress({ step: 'comparing', done: 0, total: 1 });
    const published = await target.open(publication);
    const verified = await verifyPublication(published, { directory, local, sample }).finally(() => published.close());
    throwIfCancelled(signal);
    if (complete === undefined) {
      await writePublication(place.files(place.name), publication);
      await target.flushRecord?.();
    }
    if (alias !== undefined) await target.setAlias(alias);
    return {
      address: place.shown,
      collection: place.name,
      rows: storedRows(publication),
      resumed: (progress?.nextRow ?? 0) > 0,
      wasComplete: complete !== undefined,
      alias: alias ?? null,
      verified,
    };
  } finally {
    local.close();
    await target?.close();
  }
}

/** The manifest with the model's folder as an absolute path: a relative one starts at the index's folder, which is not in the store. */
function portable({ folder, manifest }: IndexDirectory): IndexManifest {
  const { modelLocation } = manifest;
  return modelLocation === undefined ? manifest : { ...manifest, modelLocation: resolve(folder, modelLocation) };
}

async function makePlan<Facts extends { readonly name: string }>(
  target: PublishTarget<Facts>,
  { manifest, local }: PublishSource,
  earlier: PublicationPlan | undefined,
  { onProgress }: PublishOptions,
): Promise<PublicationPlan> {
  const { place, documentBytes } = target;
  let pieces = earlier?.pieces;
  // The pieces of an earlier run are enough for the same index.
  if (pieces === undefined) {
    onProgress({ step: 'reading the passages', done: 0, total: 1 });
    const bytes = local.longestDocument();
    const { most, aPiece } = documentBytes;
    if (bytes > most) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `The longest document has ${bytes} bytes; in ${place.shown}, one can have up to ${most}. Split the corpus with \`trawl prepare\`.`,
      );
    }
    pieces = Math.max(1, Math.ceil(bytes / aPiece));
  }
  return planOf(manifest, { pieces, ...(await target.planned(earlier)) });
}

interface Storing extends PublishSource, PublishOptions {
  readonly plan: PublicationPlan;
  readonly files: PartStore;
}

/** Stores rows and files, from where an earlier run stopped. */
async function store<Facts extends { readonly name: string }>(
  target: PublishTarget<Facts>,
  source: PublishSource,
  plan: PublicationPlan,
  options: PublishOptions,
): Promise<Publication> {
  const storing = { ...source, ...options, plan, files: target.place.files(target.place.name) };
  const rows = await storeRows(target.rowStore(plan), storing);
  const stored = await storeFiles(storing);
  const { manifest, local } = source;
  return { ...plan, manifest, ...rows, lookups: local.lookups(), ...stored, ...(await target.finish(plan)) };
}

async function storeFiles({
  files: store,
  directory: { folder, manifest, columns },
  signal,
  onProgress,
}: Storing): Promise<Pick<Publication, 'columns' | 'deletedRows'>> {
  const total = columns.length + 1;
  let part = FIRST_FILE_PART;
  const put = async (path: string): Promise<StoredFile> => {
    throwIfCancelled(signal);
    const stored = await writeFile(store, part, readFileSync(path));
    part += stored.parts;
    return stored;
  };
  const stored: Publication['columns'] = [];
  for (const [i, { name, type, paths }] of columns.entries()) {
    onProgress({ step: 'storing files', done: i, total });
    const files: StoredFile[] = [];
    for (const path of paths) files.push(await put(path));
    stored.push({ name, type, files });
  }
  const { tombstones } = manifest;
  const deletedRows = tombstones === null ? null : await put(within(folder, tombstones.path));
  return { columns: stored, deletedRows };
}

const READ_ROWS = 2_000;

interface RowStore {
  /** The most bytes of a call, unless one row has more, and the most rows. */
  readonly callBytes: number;
  readonly callRows: number;
  /** Stores rows. Writing a row again changes nothing. */
  write(rows: readonly PublishedRow[]): Promise<void>;
  /** The norm of a vector, rounded up. @throws TrawlError NOT_SUPPORTED for a vector that the store cannot score. */
  normOf(row: number, vector: Float32Array): number;
}

/**
 * Stores the rows of an index, from where an earlier run stopped, and records the progress after each read. Rows that were stored after
 * the last record are stored again.
 *
 * @returns facts about all rows, including the rows of earlier runs.
 */
async function storeRows(
  store: RowStore,
  { files, local, plan, signal, onProgress }: Storing,
): Promise<Pick<Publication, 'largestNorm' | 'contentSum'>> {
  const progress = await readProgress(files);
  let largestNorm = progress?.largestNorm ?? 0;
  const sum = new ContentSum(progress?.contentSum);
  let nextRow = progress?.nextRow ?? 0;
  const record = () => writeProgress(files, { ...plan, nextRow, largestNorm, contentSum: sum.hex });
  // Before the first row, so that a store with rows always names their index.
  if (progress === undefined) await record();
  const report = (): void => onProgress({ step: 'storing rows', done: nextRow, total: local.rows });
  report();
  while (nextRow < local.rows) {
    throwIfCancelled(signal);
    const end = local.endOf(nextRow, READ_ROWS);
    const rows = await local.range(nextRow, end, plan.keyColumns);
    for (const row of rows) {
      sum.add(row);
      largestNorm = Math.max(largestNorm, store.normOf(row.row, row.vector));
    }
    for (const call of callsOf(rows, store)) {
      throwIfCancelled(signal);
      await store.write(call);
    }
    nextRow = end;
    await record();
    report();
  }
  return { largestNorm, contentSum: sum.hex };
}

function* callsOf(rows: readonly PublishedRow[], { callBytes, callRows }: RowStore): Generator<PublishedRow[]> {
  let call: PublishedRow[] = [];
  let bytes = 0;
  for (const row of rows) {
    const own = row.vector.byteLength + Buffer.byteLength(row.document) + 256;
    if (call.length > 0 && (call.length === callRows || bytes + own > callBytes)) {
      yield call;
      call = [];
      bytes = 0;
    }
    call.push(row);
    bytes += own;
  }
  if (call.length > 0) yield call;
}
