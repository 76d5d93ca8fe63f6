import { TrawlError } from '../../base/errors.ts';
import { isSameJson } from '../../base/objects.ts';
import { fieldDifferences } from '../opensearch/check-index.ts';
import { type OpenSearchAddress, shownAddress } from '../opensearch/opensearch-address.ts';
import type { IndexFacts, OpenSearchClient } from '../opensearch/opensearch-client.ts';
import { filesIndex, hasFileFields, indexFiles } from '../opensearch/opensearch-files.ts';
import {
  type Progress,
  type Publication,
  type PublicationPlan,
  readProgress,
  readPublication,
} from '../published/publication.ts';

type Words = PublicationPlan['words'];

/** What a name in OpenSearch holds before a publication. */
export interface HeldIndex {
  /** Undefined if there is no such index. */
  readonly facts: IndexFacts | undefined;
  readonly hasFiles: boolean;
  /** Of a finished publication. */
  readonly complete: Publication | undefined;
  /** Of an unfinished one that may have stored rows. */
  readonly progress: Progress | undefined;
}

/**
 * Finds what a name holds. Changes nothing.
 *
 * @throws TrawlError INDEX_EXISTS for an alias or an index of something else.
 */
export async function heldIndex(client: OpenSearchClient, address: OpenSearchAddress): Promise<HeldIndex> {
  const { index } = address;
  const facts = await client.describe(index);
  if (facts !== undefined && facts.name !== index) {
    throw new TrawlError(
      'INDEX_EXISTS',
      `${shownAddress(address)}: ${index} is an alias of ${facts.name}. Publish into an index of another name, with --alias ${index} to move the alias to it.`,
    );
  }
  const held = await client.describe(filesIndex(index));
  const hasFiles = held !== undefined;
  if (hasFiles && !hasFileFields(held)) {
    throw new TrawlError(
      'INDEX_EXISTS',
      `${shownAddress(address)}: the index ${filesIndex(index)}, which belongs to this name, was not made by \`trawl publish\`. Publish into an index of another name.`,
    );
  }
  // Files alone are left of an index that was dropped, or of a run killed before it made the index.
  if (facts === undefined) return { facts, hasFiles, complete: undefined, progress: undefined };
  if (!hasFiles) throw occupied(address, 'was not made by `trawl publish`');
  const files = indexFiles(client, index);
  const complete = await readPublication(files);
  const progress = complete === undefined ? await readProgress(files) : undefined;
  return { facts, hasFiles, complete, progress };
}

/**
 * @param index its fingerprint, and the settings of its words.
 * @throws TrawlError INDEX_EXISTS if the name has rows of another index, or fields of another form.
 */
export function checkSameIndex(
  { facts, complete, progress }: HeldIndex,
  address: OpenSearchAddress,
  { fingerprint, words }: { readonly fingerprint: string; readonly words: Words },
): void {
  const earlier = complete ?? progress;
  if (earlier !== undefined && earlier.fingerprint !== fingerprint) throw occupied(address, 'is of another index');
  // Rows are not stored again, so that their words stay as they are.
  if (earlier !== undefined && !isSameJson(earlier.words, words)) {
    throw occupied(address, `was published ${wordsText(earlier.words)}, and the folder is now ${wordsText(words)}`);
  }
  if (facts === undefined) return;
  const [difference] = fieldDifferences(facts, words);
  if (difference !== undefined) throw occupied(address, `has ${difference}`);
}

function wordsText(words: Words): string {
  if (words === undefined) return 'without words for BM25';
  const { fields, analyser, k1, b } = words;
  return `with the words of ${fields.join(' and ')} (${analyser}, k1 ${k1}, b ${b})`;
}

export function occupied(address: OpenSearchAddress, what: string): TrawlError {
  return new TrawlError(
    'INDEX_EXISTS',
    `${shownAddress(address)}: the index ${what}. Publish into an index of another name, or drop it and its files (${filesIndex(address.index)}) first.`,
  );
}
