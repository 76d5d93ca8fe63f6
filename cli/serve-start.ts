import { isLoopback } from '../src/http/access.ts';
import type { RetrieverHolder } from '../src/http/retriever-holder.ts';
import { formatCount } from './format.ts';

/** The one line of `--json`: for a script that starts a server and waits until it is ready. */
export function startFacts(url: string, { slots }: RetrieverHolder): object {
  const indexes = slots.map((slot) => {
    const { index, rows, dimension, metric, generation, model } = slot.retriever!.info;
    return { index, rows, dimension, metric, generation, model: model.name };
  });
  return { url, pid: process.pid, ...indexes[0], ...(indexes.length === 1 ? {} : { indexes }) };
}

/** What a person needs after the start: where it is, a request to copy, what to do next. */
export function banner(url: string, { slots }: RetrieverHolder, keys: boolean): string[] {
  const key = keys ? " -H 'authorization: Bearer KEY'" : '';
  const curl = `curl -s ${url}/retrieve${key} -H 'content-type: application/json' -d '{"queries": ["who designed the Eiffel Tower"], "topk": 3, "return_scores": true}'`;
  const names = slots.map(({ retriever }) => {
    const { index, rows, model } = retriever!.info;
    return `${index} (${formatCount(rows)} passages, ${model.name})`;
  });
  return [
    '',
    `Serving ${names.join(', ')} on ${url}`,
    '',
    `  search page   ${url}/`,
    `  try it        ${curl}`,
    '  stop          Ctrl-C',
    '',
  ];
}

/** What listening beyond this machine means. */
export function exposureNotes(
  host: string,
  { keys, tls }: { readonly keys: boolean; readonly tls: boolean },
): string[] {
  if (host === 'localhost' || isLoopback(host)) return [];
  const where =
    host === '0.0.0.0' || host === '::' ? `${host} is every network of this machine` : `${host} is no loopback address`;
  if (!keys) return [`${where}: whoever reaches the port can search, since there are no keys (--keys-file).`];
  return tls ? [] : [`${where}, and without TLS (--tls-cert) keys and queries can be read on the way.`];
}
