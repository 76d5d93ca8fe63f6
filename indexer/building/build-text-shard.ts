import { join } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { bug } from '../../src/base/errors.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { makeColumns } from '../columns/make-columns.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import { makeLexicalIfWanted } from '../lexical/make-lexical.ts';
import type { BuiltShard, ShardContext, ShardProgress } from './build-shard.ts';
import { storedPassages } from './planned-shard.ts';
import { writeShardManifest } from './shard-manifest.ts';

/** Completes a shard that has inverted indexes and no vectors. */
export async function buildTextShard(
  folder: string,
  input: ShardManifest['input'],
  context: ShardContext,
  onProgress: (progress: ShardProgress) => void,
): Promise<BuiltShard> {
  const stored = storedPassages(folder);
  if (stored === undefined) throw bug(`${folder} has no passages`);
  onProgress({ doing: 'words', rows: 0, tokens: 0 });
  const lexical = await makeLexicalIfWanted(folder, context, (rows) => onProgress({ doing: 'words', rows, tokens: 0 }));
  onProgress({ doing: 'finish', rows: stored.rows, tokens: 0 });
  throwIfCancelled(context.signal);
  const manifest = await writeShardManifest(folder, {
    rows: stored.rows,
    vectors: undefined,
    stored,
    truncatedPassages: 0,
    lexical,
    columns: await makeColumns(folder, join(folder, PASSAGES_FILE), context.columns, context),
    input,
    context,
  });
  return { manifest, tokens: 0, resumedRows: 0 };
}
