import { randomUUID } from 'node:crypto';
import { PassThrough, type Readable } from 'node:stream';

/** Proxies and clients close a connection on which nothing arrives for long; clients ignore comments. */
const COMMENT_EVERY_MS = 15_000;
/** Bytes that a client may leave unread. Beyond them its stream ends, because its answers stay in memory. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

/**
 * The streams of the older of MCP's two HTTP transports: a client holds one open by GET, and gets there the answers to the messages
 * that it posts to the address in the first event (https://modelcontextprotocol.io/specification/2024-11-05/basic/transports).
 */
export class EventStreams {
  readonly #streams = new Map<string, EventStream>();
  #closing = false;

  /** Opens a stream. `address`: where its client posts messages, for the id of the stream. */
  open(address: (id: string) => string): Readable {
    const id = randomUUID();
    const stream = new EventStream(address(id), () => this.#streams.delete(id));
    this.#streams.set(id, stream);
    if (this.#closing) stream.close();
    return stream.output;
  }

  find(id: string): EventStream | undefined {
    return this.#streams.get(id);
  }

  close(): void {
    this.#closing = true;
    for (const stream of this.#streams.values()) stream.close();
  }
}

class EventStream {
  readonly output = new PassThrough();
  readonly #ended = new AbortController();
  /** Aborts when the stream ends. */
  readonly signal: AbortSignal = this.#ended.signal;
  readonly #comments: NodeJS.Timeout;
  #running = 0;
  #closing = false;

  constructor(address: string, onEnd: () => void) {
    this.#comments = setInterval(() => this.#write(':\n\n'), COMMENT_EVERY_MS).unref();
    this.output.once('close', () => {
      clearInterval(this.#comments);
      this.#ended.abort();
      onEnd();
    });
    this.#write(`event: endpoint\ndata: ${address}\n\n`);
  }

  /** Runs work whose result is sent. When the server stops, the stream ends after the work that runs then. */
  async run(work: () => Promise<readonly string[]>): Promise<void> {
    this.#running++;
    try {
      for (const message of await work()) this.#write(`event: message\ndata: ${message}\n\n`);
    } finally {
      this.#running--;
      this.#endIfIdle();
    }
  }

  close(): void {
    this.#closing = true;
    this.#endIfIdle();
  }

  #endIfIdle(): void {
    if (this.#closing && this.#running === 0) this.output.end();
  }

  #write(text: string): void {
    if (this.output.writableEnded || this.output.destroyed) return;
    this.output.write(text);
    if (this.output.writableLength + this.output.readableLength > MAX_UNREAD_BYTES) this.output.destroy();
  }
}
