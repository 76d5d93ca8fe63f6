const LOAD_NAMES: Readonly<Record<string, string>> = {
  lone: 'One client, one query at a time',
  batch: 'One POST of 512 queries',
  verl: '120 clients, one to three queries a request',
  'verl-keep-alive': '120 clients, kept connections',
  skyrl: '2,560 clients at once, one query each',
  rollouts: 'Five rollouts a question',
  'lone-beside-batch': 'One client beside batches',
  overhead: 'One client, ten passages a query',
  'free-encoder': '64 clients, one query each, no encoder',
  'free-encoder-batch': '8 clients, 64 queries each, no encoder',
  generator: "Fixed replies, the load generator's limit",
};
const STEADY = /^clients-(\d+)$/;

/** A load of `trawl bench serve` in words, or its name. */
export function loadName(load: string): string {
  const clients = STEADY.exec(load)?.[1];
  if (clients !== undefined) {
    return clients === '1'
      ? 'One client, one query after the other, no pauses'
      : `${clients} clients, one query after the other`;
  }
  return LOAD_NAMES[load] ?? load;
}

/** Which of single flight and answer cache a server of the load `rollouts` has. */
export function rolloutServer(engine: string): string {
  if (!engine.startsWith('trawl')) return engine;
  const has = {
    'single flight': !engine.includes('--no-single-flight'),
    'answer cache': !engine.includes('--cache-bytes 0'),
  };
  const on = Object.entries(has).flatMap(([name, isOn]) => (isOn ? [name] : []));
  return on.length === 0 ? 'neither single flight nor cache' : on.join(' and ');
}
