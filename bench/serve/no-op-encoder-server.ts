import { buildApp } from '../../src/http/app.ts';
import { listen } from '../../src/http/connections/listen.ts';
import { requireVectors } from '../../src/manifest/vector-space.ts';
import { SqlitePassageStore } from '../../src/passages/sqlite-passage-store.ts';
import { assembleRetriever } from '../../src/retrieval/opening/assemble-retriever.ts';
import { openIndexDirectory } from '../../src/retrieval/opening/index-directory.ts';
import { openEngine } from '../../src/vector-index/open-engine.ts';
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
const retriever = assembleRetriever(
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
