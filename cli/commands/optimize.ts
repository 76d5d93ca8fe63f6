import { optimizeIndex } from '../../indexer/optimize/optimize-index.ts';
import { compactIndex } from '../../indexer/update/compact-index.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { formatNumberOf } from '../../src/base/format.ts';
import { parseColumns } from '../../src/engine/filter/column.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { CHANGED_BM25_OPTIONS, givenBm25 } from '../building/bm25-options.ts';
import { COLUMN_OPTIONS } from '../building/corpus-options.ts';
import * as option from '../options/option.ts';
import { lines } from '../output/lines.ts';
import { defineCommand, EXIT } from '../program/command.ts';

export const optimizeCommand = defineCommand({
  name: 'optimize',
  summary:
    'make an index faster or smaller, or add BM25 or columns: search codes, prefilter, float16, compaction, inverted indexes',
  description:
    'Writes int8 search codes for shards without them (for example if the native engine was missing at the build) or with codes of an earlier version, and a ' +
    'prefilter for shards where it makes searches faster: a search then reads half the bytes or less. Answers do not change.\n\n' +
    '--float16 halves the vectors of shards whose values are all exact in float16, as float16 encoders make them. ' +
    '--bm25 adds or repairs inverted indexes, and --column columns for filters; without other options both also work without the native engine. --compact drops deleted rows. Only --compact changes row numbers and the generation. ' +
    'A server that has the index open keeps the old version until it reloads.\n\n' +
    'The same command resumes a stopped one at the shard that it was stopped at; SIGTERM stops it with exit code 75, Ctrl-C ' +
    'with 130. A compaction starts from the beginning, and both stop it with 130.',
  resumable: true,
  positionals: { usage: '<index>', help: { index: 'The index directory.' } },
  options: {
    compact: option.flag(
      'First rewrite shards that have deleted rows, without these rows. Vectors are copied; row numbers and the generation change. The old shards stay on disk until the index is changed or compacted again.',
    ),
    float16: option.flag('Store the vectors of a shard as float16 if all its values are exact in float16.'),
    ...COLUMN_OPTIONS,
    'drop-column': option.list(
      'NAME',
      'Remove a column for filters. With --column of the same name, it is made again with another type. Repeat it for several columns.',
    ),
    ...CHANGED_BM25_OPTIONS,
  },
  examples: [
    'trawl optimize indexes/wiki18',
    'trawl optimize indexes/wiki18 --float16',
    'trawl optimize indexes/wiki18 --compact',
    'trawl optimize indexes/wiki18 --bm25',
    'trawl optimize indexes/news --column source:string --column meta.date:date',
  ],
  async run({ options, positionals, given, signal, out, note }) {
    const current = options.bm25 ? readIndexManifest(positionals[0]!).bm25?.made : undefined;
    const bm25 = givenBm25(options, given, current);
    const changes = { add: parseColumns(options.column), drop: options['drop-column'] };
    const columns = changes.add.length + changes.drop.length === 0 ? undefined : changes;
    const needsEngine = bm25 === undefined && columns === undefined;
    const loaded = loadKernel();
    if (!loaded.ok && (needsEngine || options.compact || options.float16)) {
      throw new TrawlError(
        'ENGINE_MISSING',
        `trawl optimize without --bm25 and --column, or with --compact or --float16, needs the native engine, which is missing: ${loaded.reason}. ` +
          'Install a C++ compiler and run npm run build.',
      );
    }
    const kernel = loaded.ok ? loaded.kernel : undefined;
    if (!loaded.ok)
      note(
        `The native engine is missing (${loaded.reason}), so only inverted indexes and columns are made, in TypeScript.`,
      );
    const compacted = options.compact ? await compactIndex(positionals[0]!, kernel, { onStep: note, signal }) : null;
    const summary = await optimizeIndex(positionals[0]!, kernel, {
      float16: options.float16,
      bm25,
      columns,
      onStep: note,
      signal,
    });
    const shards = (count: number): string => formatNumberOf(count, 'shard');
    const { prefiltersNotWorthwhile: useless, notRepresentable } = summary;
    const done = lines(
      compacted !== null &&
        `${formatNumberOf(compacted.dropped, 'deleted row')} dropped, ${shards(compacted.compacted)} rewritten`,
      `search codes made for ${shards(summary.codesMade)}`,
      `prefilters made for ${summary.prefiltersMade}${useless > 0 ? ` (not worthwhile for ${useless})` : ''}`,
      options.float16 && `${shards(summary.rewritten)} rewritten as float16`,
      bm25 !== undefined && `inverted indexes made for ${shards(summary.lexicalMade)}`,
      columns !== undefined && `columns made for ${shards(summary.columnsMade)}`,
      notRepresentable > 0 && `${shards(notRepresentable)} kept as float32: a value is not exact in float16`,
    );
    const { compacted: rewritten, dropped } = compacted ?? {};
    out(options.json ? JSON.stringify({ compacted: rewritten, dropped, ...summary }) : done.join('; '));
    return EXIT.ok;
  },
});
