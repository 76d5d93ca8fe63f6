import { TrawlError } from '../../base/errors.ts';
import { type Progress, type Publication, type PublicationPlan, readProgress, readPublication } from './publication.ts';
import type { PartStore } from './stored-files.ts';

/** A name in a store, as an address has it. */
export interface NamedPlace {
  readonly kind: 'collection' | 'index';
  readonly name: string;
  /** The address for messages, without user and password. */
  readonly shown: string;
}

/** @typeParam Facts the store's description of what has the name. */
export interface StorePlace<Facts extends { readonly name: string }> extends NamedPlace {
  /** Undefined if nothing has the name. The name in the facts is what an alias stands for. */
  describe(name: string): Promise<Facts | undefined>;
  /** Whether these can be the facts of `filesName`. */
  holdsFiles(facts: Facts): boolean;
  files(name: string): PartStore;
}

/** The collection or index beside a published one: it has the record of the publication, columns and deleted rows. */
export function filesName(name: string): string {
  return `${name}_trawl`;
}

export interface FoundPublication<Facts> {
  /** The own name, which an alias is resolved to: a swap of the alias must not mix two indexes. */
  readonly name: string;
  readonly facts: Facts;
  readonly publication: Publication;
}

/** @throws TrawlError INDEX_NOT_FOUND, INDEX_FILE_FOREIGN, or an error of `readPublication`. */
export async function findPublication<Facts extends { readonly name: string }>(
  place: StorePlace<Facts>,
): Promise<FoundPublication<Facts>> {
  const { kind, shown } = place;
  const facts = await place.describe(place.name);
  if (facts === undefined) {
    throw new TrawlError(
      'INDEX_NOT_FOUND',
      `${shown}: there is no such ${kind} or alias. Publish an index with \`trawl publish INDEX ${shown}\`.`,
    );
  }
  const { name } = facts;
  const files = await place.describe(filesName(name));
  if (files === undefined || !place.holdsFiles(files)) {
    const found = files === undefined ? 'missing' : 'of something else';
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${shown}: the ${kind} ${name} was not made by \`trawl publish\`: ${filesName(name)} is ${found}.`,
    );
  }
  const publication = await readPublication(place.files(name));
  if (publication === undefined) {
    throw new TrawlError(
      'INDEX_NOT_FOUND',
      `${shown}: the publication into ${name} is unfinished. Run the same \`trawl publish\` again; it continues.`,
    );
  }
  return { name, facts, publication };
}

export interface HeldPlace<Facts> {
  readonly facts: Facts | undefined;
  readonly hasFiles: boolean;
  readonly complete: Publication | undefined;
  /** The record of an unfinished publication, which may have stored rows. */
  readonly progress: Progress | undefined;
}

/** Finds what a name holds. @throws TrawlError INDEX_EXISTS for an alias, or for something that `trawl publish` did not make. */
export async function heldPlace<Facts extends { readonly name: string }>(
  place: StorePlace<Facts>,
  prepareFiles?: () => Promise<void>,
): Promise<HeldPlace<Facts>> {
  const { kind, name, shown } = place;
  const facts = await place.describe(name);
  if (facts !== undefined && facts.name !== name) {
    throw new TrawlError(
      'INDEX_EXISTS',
      `${shown}: ${name} is an alias of ${facts.name}. Publish under another name, with --alias ${name} to move the alias to it.`,
    );
  }
  const files = await place.describe(filesName(name));
  if (files !== undefined && !place.holdsFiles(files)) {
    throw new TrawlError(
      'INDEX_EXISTS',
      `${shown}: the ${kind} ${filesName(name)}, which belongs to this name, was not made by \`trawl publish\`. Publish under another name.`,
    );
  }
  const hasFiles = files !== undefined;
  // An index that was dropped leaves its files, and so does a run that was killed before it created the index.
  if (facts === undefined) return { facts, hasFiles, complete: undefined, progress: undefined };
  if (!hasFiles) throw occupiedPlace(place, 'was not made by `trawl publish`');
  await prepareFiles?.();
  const complete = await readPublication(place.files(name));
  const progress = complete === undefined ? await readProgress(place.files(name)) : undefined;
  return { facts, hasFiles, complete, progress };
}

/** The plan of an earlier publication; undefined if there is none. @throws TrawlError INDEX_EXISTS if it is of another index. */
export function checkSameIndex(
  { complete, progress }: HeldPlace<unknown>,
  place: NamedPlace,
  fingerprint: string,
): PublicationPlan | undefined {
  const earlier = complete ?? progress;
  if (earlier === undefined || earlier.fingerprint === fingerprint) return earlier;
  throw occupiedPlace(place, 'is of another index');
}

/** @param what says what is wrong with the collection or index. */
export function occupiedPlace({ kind, name, shown }: NamedPlace, what: string): TrawlError {
  return new TrawlError(
    'INDEX_EXISTS',
    `${shown}: the ${kind} ${what}. Publish under another name, or drop it and its files (${filesName(name)}) first.`,
  );
}
