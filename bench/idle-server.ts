import { buildApp } from '../src/http/app.ts';
import { listen } from '../src/http/listen.ts';
import { openIndexDirectory } from '../src/retrieval/index-directory.ts';
import { openRetriever } from '../src/retrieval/open-retriever.ts';
import { IdleEncoder } from './idle-encoder.ts';

/** `node idle-server.js INDEX`: a server of the index whose encoder costs nothing. Ready when it has written {"url": …}. */
const index = process.argv[2]!;
const encoder = new IdleEncoder(openIndexDirectory(index).manifest.dimension);
const app = buildApp(await openRetriever(index, { encoder }));
const url = await listen(app, { host: '127.0.0.1', port: 0 });
process.stdout.write(`${JSON.stringify({ url })}\n`);
