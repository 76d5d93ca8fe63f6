import { closeSync, openSync, writeFileSync } from 'node:fs';
import { copyFile, link, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DEFAULT_PASSAGE_TEMPLATE } from '../../corpus/passage-template.ts';
import type { SerializedError } from '../../src/base/errors.ts';
import { decodingEncoder, writtenIdentity } from '../../src/encoder/written-vectors.ts';
import { BM25_PROFILES } from '../../src/engine/lexical/bm25.ts';
import type { Metric } from '../../src/engine/metric.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { StoreSnapshot } from '../../src/index/document-store/document-store.ts';
import type { IndexDefinition, VECTOR_SIMILARITIES } from '../../src/index/document-store/index-files.ts';
import { HAS_VECTOR, VECTOR, writtenRow } from '../../src/index/document-store/written-row.ts';
import { buildIndex } from '../building/build-index.ts';
import { bm25Settings } from '../lexical/make-lexical.ts';
import { removePassages } from '../update/remove-passages.ts';
import { updateIndex } from '../update/update-index.ts';

export interface RefreshJob {
  readonly definition: IndexDefinition;
  readonly store: string;
  /** The index folder to write, and a folder for the corpus. */
  readonly out: string;
  readonly scratch: string;
  /** An index of the changes up to a number, to a copy of which later ones are added. Undefined: all documents are indexed. */
  readonly base?: { readonly folder: string; readonly seqNo: number } | undefined;
}

/** `seqNo`: the number of the last change that the index has. */
export type RefreshResult = { readonly seqNo: number };

/** Does a job, in a child process or in this one. @throws TrawlError as `runRefresh`; CANCELLED when the signal is aborted. */
export type DoRefreshJob = (job: RefreshJob, signal: AbortSignal) => Promise<RefreshResult>;

export type RefreshReply =
  | { readonly ok: true; readonly result: RefreshResult }
  | { readonly ok: false; readonly error: SerializedError };

/** The passage of an index without documents, because an index needs one. It is deleted at once. */
const NO_DOCUMENT = { id: 'none', row: '{"id":"none","title":"none","text":"none","contents":"none","_vector":""}' };
const CHUNK_CHARACTERS = 1_000_000;

/**
 * Builds the index of all documents, or of the changes since an earlier refresh and of its index, which stays as it is.
 *
 * @throws TrawlError as `buildIndex`, `updateIndex` and `removePassages`.
 */
export async function runRefresh(job: RefreshJob): Promise<RefreshResult> {
  const corpus = join(job.scratch, 'documents.jsonl');
  await mkdir(job.scratch, { recursive: true });
  try {
    const written = writeCorpus(job, corpus);
    if (job.base === undefined) await build(job, corpus, written.documents);
    else await change(job, job.base.folder, corpus, written);
    return { seqNo: written.seqNo };
  } finally {
    await rm(job.scratch, { recursive: true, force: true });
  }
}

interface WrittenCorpus {
  readonly documents: number;
  readonly seqNo: number;
  /** Ids of the changes, deletions included; only of a job with a base. */
  readonly changed: readonly string[];
}

function writeCorpus({ definition, store, base }: RefreshJob, path: string): WrittenCorpus {
  const snapshot = new StoreSnapshot(store);
  const file = openSync(path, 'w');
  try {
    let documents = 0;
    let text = '';
    const changed: string[] = [];
    for (const { id, source } of snapshot.changesAfter(base?.seqNo ?? -1)) {
      if (base !== undefined) changed.push(id);
      if (source === null) continue;
      text += `${writtenRow(definition, id, source)}\n`;
      documents++;
      if (text.length < CHUNK_CHARACTERS) continue;
      writeFileSync(file, text);
      text = '';
    }
    if (documents === 0 && base === undefined) text = `${NO_DOCUMENT.row}\n`;
    writeFileSync(file, text);
    return { documents, seqNo: snapshot.lastSeqNo, changed };
  } finally {
    closeSync(file);
    snapshot.close();
  }
}

async function build({ definition, out }: RefreshJob, corpus: string, documents: number): Promise<void> {
  const { fields, analyser } = definition;
  const hasVectors = definition.vector?.dimension !== undefined;
  const { k1, b } = definition.bm25 ?? BM25_PROFILES.elasticsearch;
  await buildIndex({
    ...shared(corpus, out, definition),
    bm25: bm25Settings({ analyser, k1, b, fields }),
    columns: [
      ...definition.columns.map(({ name, type }) => ({ name, type })),
      ...(hasVectors ? [{ name: HAS_VECTOR, type: 'boolean' as const }] : []),
    ],
    passageTemplate: hasVectors ? `{${VECTOR}}` : DEFAULT_PASSAGE_TEMPLATE,
    uniqueIds: true,
    mayLackTitles: true,
    overwrite: true,
    restart: true,
  });
  if (documents === 0) await removePassages(out, [NO_DOCUMENT.id]);
}

async function change(
  { out, definition }: RefreshJob,
  base: string,
  corpus: string,
  { documents, changed }: WrittenCorpus,
): Promise<void> {
  await rm(out, { recursive: true, force: true });
  await linkFolder(base, out);
  await removePassages(out, changed);
  if (documents > 0) await updateIndex({ ...shared(corpus, out, definition), type: 'append', uniqueIds: true });
}

/** The files of an index never change, so the copy has the same ones. */
async function linkFolder(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await linkFolder(source, target);
    // Some file systems have no links.
    else await link(source, target).catch(() => copyFile(source, target));
  }
}

const METRICS: Readonly<Record<(typeof VECTOR_SIMILARITIES)[number], Metric>> = {
  cosine: 'cosine',
  dot_product: 'inner-product',
  l2_norm: 'l2',
  max_inner_product: 'inner-product',
};

function shared(corpus: string, out: string, { vector }: IndexDefinition) {
  const loaded = loadKernel();
  const { field = '', dimension, similarity = 'cosine' } = vector ?? {};
  const identity =
    dimension === undefined
      ? undefined
      : writtenIdentity(field, {
          dimension,
          similarity: METRICS[similarity],
          normalize: similarity === 'dot_product',
        });
  return {
    corpus: [corpus],
    corpusOptions: { format: 'jsonl' as const },
    encoder: identity && decodingEncoder(identity),
    kernel: loaded.ok ? loaded.kernel : undefined,
    out,
    onProgress: () => undefined,
  };
}
