import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { CorpusFormat } from '../corpus/corpus-format.ts';
import { listCorpusFiles } from '../corpus/list-corpus-files.ts';
import { TrawlError } from '../src/errors.ts';
import type { ModelIdentity } from '../src/manifest/model-identity.ts';
import { openIndexDirectory } from '../src/retrieval/index-directory.ts';

export interface WantedIndex {
  readonly corpus: readonly string[];
  readonly format: CorpusFormat | undefined;
  readonly model: ModelIdentity;
  readonly passageTemplate: string;
}

/** True when the index in `folder` is whole and was made from these very files with this model and template. */
export async function isCurrent(folder: string, wanted: WantedIndex): Promise<boolean> {
  let recorded: ReturnType<typeof openIndexDirectory>['manifest'];
  try {
    recorded = openIndexDirectory(folder).manifest;
  } catch (error) {
    if (error instanceof TrawlError) return false;
    throw error;
  }
  if (recorded.corpus.passageTemplate !== wanted.passageTemplate) return false;
  if (!isDeepStrictEqual(recorded.model, wanted.model)) return false;
  const files = listCorpusFiles(wanted.corpus, wanted.format);
  if (files.length !== recorded.corpus.files.length) return false;
  for (const [i, file] of files.entries()) {
    const record = recorded.corpus.files[i]!;
    if (record.name !== basename(file.path) || record.bytes !== file.sizeBytes) return false;
    if (record.sha256 !== (await sha256OfFile(file.path))) return false;
  }
  return true;
}

async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
