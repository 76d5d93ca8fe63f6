import { throwIfCancelled } from '../../base/abort.ts';
import type { Metric } from '../../engine/metric.ts';
import type { IndexManifest } from '../../index/manifest/index-manifest.ts';
import { requireVectors } from '../../index/manifest/vector-space.ts';
import { type IndexDirectory, openIndexDirectory } from '../../search/opening/index-directory.ts';
import type { PublishedIndex } from '../published/open-stored.ts';
import { type Publication, type PublicationPlan, storedRows } from '../published/publication.ts';
import { LocalRows } from './local-rows.ts';
import { portable } from './store-files.ts';
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
  /** The name of the collection in Milvus, or of the index in OpenSearch. */
  readonly collection: string;
  /** Rows in the collection. */
  readonly rows: number;
  /** Whether an earlier run had stored rows. */
  readonly resumed: boolean;
  /** Whether the collection was complete already. */
  readonly wasComplete: boolean;
  readonly alias: string | null;
  readonly verified: VerifiedPublication;
}

/** The index that is published. */
export interface PublishSource {
  readonly directory: IndexDirectory;
  /** As the store keeps it. */
  readonly manifest: IndexManifest;
  readonly metric: Metric;
  readonly local: LocalRows;
}

export interface BegunPublication {
  readonly plan: PublicationPlan;
  /** What an earlier run published completely. */
  readonly complete: Publication | undefined;
  /** Whether an earlier run stored rows, but did not end. */
  readonly resumed: boolean;
}

/** The place in a store that an index is published to. The methods are called in this order. */
interface PublishTarget {
  /** Without user and password. */
  readonly address: string;
  readonly collection: string;
  /**
   * Makes the collections, or finds what an earlier run left.
   *
   * @throws TrawlError INDEX_EXISTS for a collection of another index or of something else, NOT_SUPPORTED for documents that are too long.
   */
  begin(): Promise<BegunPublication>;
  /** Stores rows and files, from where an earlier run stopped. */
  store(plan: PublicationPlan): Promise<Publication>;
  /** Makes everything searchable. @throws TrawlError if rows are missing, or the store would not search them all. */
  check(publication: Publication): Promise<void>;
  /** Opens it to be compared. Closing it leaves the connection open. */
  open(publication: Publication): Promise<PublishedIndex>;
  /** Writes the record that makes the collection an index. */
  complete(publication: Publication): Promise<void>;
  setAlias(alias: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Loads an index into a store. A killed run is resumed by the next one; a complete collection is only checked. The record that makes the
 * collection an index is written last, after everything was compared; the alias is moved after that.
 *
 * @throws TrawlError INDEX_EXISTS if the place has another index or something else; STORE_…, INDEX_…, NOT_SUPPORTED.
 */
export async function publishIndex(
  folder: string,
  { alias, sample, signal, onProgress }: PublishOptions,
  connect: (source: PublishSource) => Promise<PublishTarget>,
): Promise<PublishReport> {
  const directory = openIndexDirectory(folder);
  const { metric } = requireVectors(folder, directory.manifest);
  const local = new LocalRows(directory);
  let target: PublishTarget | undefined;
  try {
    target = await connect({ directory, manifest: portable(directory), metric, local });
    const { plan, complete, resumed } = await target.begin();
    const publication = complete ?? (await target.store(plan));
    await target.check(publication);
    onProgress({ step: 'comparing', done: 0, total: 1 });
    const verified = await verifyTarget(target, publication, { directory, local, sample });
    throwIfCancelled(signal);
    if (complete === undefined) await target.complete(publication);
    if (alias !== undefined) await target.setAlias(alias);
    return {
      address: target.address,
      collection: target.collection,
      rows: storedRows(publication),
      resumed,
      wasComplete: complete !== undefined,
      alias: alias ?? null,
      verified,
    };
  } finally {
    local.close();
    await target?.close();
  }
}

async function verifyTarget(
  target: PublishTarget,
  publication: Publication,
  folder: Parameters<typeof verifyPublication>[1],
): Promise<VerifiedPublication> {
  const published = await target.open(publication);
  try {
    return await verifyPublication(published, folder);
  } finally {
    await published.close();
  }
}
