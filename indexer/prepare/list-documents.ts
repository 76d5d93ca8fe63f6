import { basename } from 'node:path';
import { FILE_FORMATS, type FileFormat, formatNamed, formatOfName } from '../../corpus/corpus-formats.ts';
import { type CorpusFile, listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import { jsonl } from '../../corpus/read-jsonl.ts';
import { TrawlError } from '../../src/base/errors.ts';

/** Formats of document files. */
export const DOCUMENT_FORMATS: readonly string[] = FILE_FORMATS.filter(({ format }) => format === jsonl).map(
  ({ name }) => name,
);

/** Lists the document files in reading order (see `listCorpusFiles`). Throws CORPUS_FORMAT_UNKNOWN for other formats. */
export function listDocuments(paths: readonly string[], format: string | undefined): CorpusFile[] {
  const files = listCorpusFiles(paths, format, formatOfDocuments);
  for (const { path, format: found } of files) {
    if (found.format === jsonl) continue;
    throw new TrawlError('CORPUS_FORMAT_UNKNOWN', `${path} is ${found.name}; documents must be JSON Lines.`, {
      details: { path },
    });
  }
  return files;
}

/** Also recognises KILT's knowledge source (JSON Lines named `.json`) and WikiExtractor's files (`AA/wiki_00`). */
function formatOfDocuments(path: string): FileFormat | undefined {
  const name = basename(path).toLowerCase();
  const known = formatOfName(name);
  if (known !== undefined) return known;
  const match = /(?:\.json|^wiki_\d+)(\.gz|\.zst)?$/.exec(name);
  return match === null ? undefined : formatNamed(`${jsonl.name}${match[1] ?? ''}`);
}
