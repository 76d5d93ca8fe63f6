import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import { requireVectors } from '../../src/index/manifest/index-manifest.ts';
import { SqlitePassageStore } from '../../src/index/passages/sqlite-passage-store.ts';
import { IndexRetriever } from '../../src/search/index-retriever.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { buildApp } from '../../src/server/app.ts';
import { listen } from '../../src/server/connections/listen.ts';
import { denseInfo } from '../dense-info.ts';
import { NoOpEncoder } from '../no-op-encoder.ts';

/**
 * `node no-op-encoder-server.js INDEX`: like `trawl serve`, but without a log and with an encoder that takes almost no time. It
 * does not coalesce equal queries. It writes {"url": …} when it is ready.
 */
const folder = process.argv[2]!;
const { manifest, source, liveRows, passages } = openIndexDirectory(folder);
const { rows, generation } = manifest;
const { dimension, metric, model } = requireVectors(folder, manifest);
const retriever = new IndexRetriever(
  denseInfo({ index: 'free', rows, dimension, metric, generation, model }),
  {
    dense: { encoder: new NoOpEncoder(dimension), index: await openEngine(source!) },
    passages: await SqlitePassageStore.open(passages),
    liveRows,
  },
  { singleFlight: false },
);
const url = await listen(buildApp(retriever), { host: '127.0.0.1', port: 0 });
process.stdout.write(`${JSON.stringify({ url })}\n`);
