import { optimizeIndex } from '../../indexer/optimize/optimize-index.ts';
import { compactIndex } from '../../indexer/update/compact-index.ts';
import { TrawlError } from '../../src/errors.ts';
import { loadKernel } from '../../src/vector-index/kernel.ts';
import { defineCommand, EXIT } from '../command.ts';
import { formatNumberOf } from '../format.ts';

export const optimizeCommand = defineCommand({
  name: 'optimize',
  summary: 'give an index what it lacks: search codes, a screen, smaller rows',
  description:
    'Makes the int8 codes of shards that have none (built where the native engine was missing, or by another tool), the screen ' +
    'before them where one pays (half the bytes and the time of a search, or less; the answers are the same), and with --float16 ' +
    ' rewrites the vectors in half the space where every value is a float16, as those of float16 encoders are: ' +
    'nothing is lost, and scores stay the same to the bit. Row numbers and the generation stay, but for --compact. A running server keeps what ' +
    'it has open.',
  positionals: { usage: '<index>', help: { index: 'The index directory.' }, min: 1, max: 1 },
  options: {
    compact: {
      kind: 'flag',
      help: 'First write shards with removed rows anew without them. Row numbers and the generation change; vectors are copied. The old shards stay until the index is changed or compacted again.',
    },
    float16: { kind: 'flag', help: 'Store rows as float16 where that loses nothing.' },
  },
  examples: [
    'trawl optimize indexes/wiki18',
    'trawl optimize indexes/wiki18 --float16',
    'trawl optimize indexes/wiki18 --compact',
  ],
  async run({ options, positionals, signal, out, note }) {
    const loaded = loadKernel();
    if (!loaded.ok) {
      throw new TrawlError(
        'ENGINE_MISSING',
        `The native engine is needed and is not there: ${loaded.reason}. Install a C++ compiler and run npm run setup.`,
      );
    }
    const compacted = options.compact
      ? await compactIndex(positionals[0]!, loaded.kernel, { onStep: note, signal })
      : null;
    const summary = await optimizeIndex(positionals[0]!, loaded.kernel, {
      float16: options.float16,
      onStep: note,
      signal,
    });
    if (options.json) {
      const { compacted: shards = 0, dropped = 0 } = compacted ?? {};
      out(JSON.stringify({ ...(compacted === null ? {} : { compacted: shards, dropped }), ...summary }));
    } else {
      out(
        `${compacted === null ? '' : `${formatNumberOf(compacted.dropped, 'removed row')} left out, ${formatNumberOf(compacted.compacted, 'shard')} written anew; `}codes made for ${formatNumberOf(summary.codesMade, 'shard')}; screens for ${summary.screensMade}` +
          (summary.screensOfNoUse > 0 ? ` (of no use for ${summary.screensOfNoUse})` : '') +
          `; ${summary.rewritten} rewritten as float16` +
          (summary.notRepresentable > 0 ? `; ${summary.notRepresentable} stay float32: a value is no float16` : ''),
      );
    }
    return EXIT.ok;
  },
});
