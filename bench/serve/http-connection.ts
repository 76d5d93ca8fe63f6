import { connect, type Socket } from 'node:net';

export interface HttpReply {
  readonly status: number;
  /** Status line and headers. */
  readonly head: string;
  readonly body: Buffer;
}

const HEAD_END = '\r\n\r\n';
/** A request fails after this time without a byte. */
const TIMEOUT_MS = 180_000;

/**
 * An HTTP client with one connection. It uses little CPU, so that the server and not the client limits the throughput. It
 * sends one request at a time; replies must have a content-length. For measurements only: it does not validate replies.
 */
export class HttpConnection {
  readonly #port: number;
  #socket: Socket | undefined;
  #chunks: Buffer[] = [];
  #received = 0;
  #head: string | undefined;
  /** Bytes of head and body together; known after the head has arrived. */
  #expected = Number.POSITIVE_INFINITY;
  #bodyStart = 0;
  #waiting: { resolve(reply: HttpReply): void; reject(error: Error): void } | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  /** Connects if necessary. Rejects with an error; its message is the error code, such as ECONNREFUSED. */
  send(request: Buffer, { keepAlive }: { keepAlive: boolean }): Promise<HttpReply> {
    return new Promise<HttpReply>((resolve, reject) => {
      this.#waiting = {
        resolve: (reply) => {
          if (!keepAlive || /\r\nconnection: close/i.test(reply.head)) this.close();
          resolve(reply);
        },
        reject,
      };
      this.#open().write(request);
    });
  }

  /** Sends more bytes of the current request. */
  write(bytes: Buffer): void {
    this.#socket?.write(bytes);
  }

  /** Rejects a pending reply. */
  close(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.destroy();
    this.#take()?.reject(new Error('closed'));
  }

  #open(): Socket {
    if (this.#socket !== undefined) return this.#socket;
    const socket = connect(this.#port, '127.0.0.1');
    socket.setNoDelay(true);
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('timed out')));
    socket.on('data', (chunk) => this.#receive(chunk));
    const fail = (reason: string): void => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      this.#take()?.reject(new Error(reason));
    };
    socket.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
    socket.on('close', () => fail('closed'));
    this.#socket = socket;
    return socket;
  }

  #take() {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.#chunks = [];
    this.#received = 0;
    this.#head = undefined;
    this.#expected = Number.POSITIVE_INFINITY;
    return waiting;
  }

  #receive(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#received += chunk.length;
    if (this.#head === undefined) {
      const all = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
      this.#chunks = [all];
      const end = all.indexOf(HEAD_END);
      if (end < 0) return;
      const head = all.toString('latin1', 0, end);
      const length = /\r\ncontent-length: *(\d+)/i.exec(head);
      if (length === null) {
        this.#socket?.destroy(new Error('no content-length'));
        return;
      }
      this.#head = head;
      this.#bodyStart = end + HEAD_END.length;
      this.#expected = this.#bodyStart + Number(length[1]);
    }
    if (this.#received < this.#expected) return;
    const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    const head = this.#head;
    const body = all.subarray(this.#bodyStart, this.#expected);
    this.#take()?.resolve({ status: Number(head.slice(9, 12)), head, body });
  }
}
