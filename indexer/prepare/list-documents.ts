import { basename } from 'node:path';
import { type CorpusFormat, formatOfName } from '../../corpus/corpus-format.ts';
import { type CorpusFile, listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import { TrawlError } from '../../src/base/errors.ts';

/** Formats of document files. */
export const DOCUMENT_FORMATS = ['jsonl', 'jsonl.gz', 'jsonl.zst'] as const;

export type DocumentFormat = (typeof DOCUMENT_FORMATS)[number];

/** Lists the document files in reading order (see `listCorpusFiles`). Throws CORPUS_FORMAT_UNKNOWN for other formats. */
export function listDocuments(paths: readonly string[], format: DocumentFormat | undefined): CorpusFile[] {
  const files = listCorpusFiles(paths, format, formatOfDocuments);
  for (const { path, format: found } of files) {
    if ((DOCUMENT_FORMATS as readonly string[]).includes(found)) continue;
    throw new TrawlError('CORPUS_FORMAT_UNKNOWN', `${path} is ${found}; documents must be JSON Lines.`, {
      details: { path },
    });
  }
  return files;
}

/** Also recognises KILT's knowledge source (JSON Lines named `.json`) and WikiExtractor's files (`AA/wiki_00`). */
function formatOfDocuments(path: string): CorpusFormat | undefined {
  const name = basename(path).toLowerCase();
  const known = formatOfName(name);
  if (known !== undefined) return known;
  const match = /(?:\.json|^wiki_\d+)(\.gz|\.zst)?$/.exec(name);
  return match === null ? undefined : (`jsonl${match[1] ?? ''}` as CorpusFormat);
}
