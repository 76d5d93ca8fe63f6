import { existsSync, realpathSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import type { LexicalFields } from '../../engine/lexical/lexical-fields.ts';
import { type LexicalEngineOptions, openLexicalFields } from '../../engine/lexical/open-lexical-index.ts';
import { openEngine } from '../../engine/vectors/open-engine.ts';
import { SqlitePassageStore } from '../../index/passages/sqlite-passage-store.ts';
import { checkFieldRanking } from '../lexical/search-words.ts';
import { missingPart, type SearchMode } from '../search-mode.ts';
import { describeIndex } from './index-description.ts';
import { type IndexDirectory, openIndexDirectory } from './index-directory.ts';
import { type IndexParts, type IndexPartsOptions, modesOf } from './index-parts.ts';
import { openUnchanged } from './open-unchanged.ts';

/**
 * The parts of an index in a folder.
 *
 * @throws TrawlError INDEX_…; NOT_SUPPORTED if the index lacks a wanted mode.
 */
export async function folderParts(folder: string, options: IndexPartsOptions): Promise<IndexParts> {
  const engine = {
    threads: options.searchThreads,
    device: options.searchDevice,
    onWarning: options.onWarning,
    signal: options.signal,
  };
  // Resolves symbolic links once: a link that changes during opening must not mix the files of two indexes.
  const real = realFolder(folder);
  const { directory, modes, lexical } = await openUnchanged(real, () => openWords(real, options, engine));
  const { manifest, columns, liveRows } = directory;
  return {
    name: basename(resolve(folder)),
    manifest,
    description: describeIndex(directory),
    modes,
    lexical,
    wordsIn: undefined,
    columns,
    liveRows,
    modelFolders: [folder, directory.folder],
    watchFilters: (filters) => filters,
    openVectors: () => openEngine(directory.source!, engine),
    openPassages: () => SqlitePassageStore.open(directory.passages),
    close: async () => undefined,
  };
}

/**
 * Checks an index directory and opens its inverted indexes, which `trawl optimize --bm25` in another process may replace and remove.
 */
async function openWords(
  folder: string,
  { modes: wanted, fieldRanking }: IndexPartsOptions,
  engine: LexicalEngineOptions,
): Promise<{ directory: IndexDirectory; modes: readonly SearchMode[]; lexical: LexicalFields | undefined }> {
  const directory = openIndexDirectory(folder);
  const modes = modesToOpen(directory, wanted);
  if (!modes.includes('bm25')) return { directory, modes, lexical: undefined };
  if (fieldRanking !== undefined) checkFieldRanking(basename(folder), fieldRanking, [...directory.lexical.keys()]);
  return { directory, modes, lexical: await openLexicalFields(directory.lexical, engine) };
}

/**
 * The modes to open, the wanted ones first, with those that need no more than they do: an index opened for hybrid search can be
 * searched in each mode.
 *
 * @throws TrawlError NOT_SUPPORTED if the index lacks a wanted mode.
 */
function modesToOpen(
  { folder, source, lexical }: IndexDirectory,
  wanted: readonly SearchMode[] | undefined,
): readonly SearchMode[] {
  const has = { vectors: source !== undefined, words: lexical.size > 0 };
  const missing = wanted?.flatMap((mode) => missingPart(mode, has, basename(folder)) ?? [])[0];
  if (missing !== undefined) throw missing;
  return modesOf(has, wanted);
}

/** Returns a missing folder unchanged; opening it reports the error. */
function realFolder(folder: string): string {
  return existsSync(folder) ? realpathSync(folder) : folder;
}
