import { parentPort, Worker, type WorkerOptions } from 'node:worker_threads';
import { asTrawlError, bug, deserializeError, type SerializedError, serializeError } from '../errors.ts';

interface Call {
  readonly id: number;
  /** Absent: the caller only waits until the thread can answer. */
  readonly request?: unknown;
}

type Reply =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly error: SerializedError };

interface Waiting {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A worker thread whose file calls `answerCalls`. It keeps the process alive only while it has a call. */
export class CallThread<Request, Answer> {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ended: Promise<void>;
  #failure: Error | undefined;
  #nextId = 0;
  #isClosing = false;

  /** @param onEnded is called when the thread has ended, with the error that its calls get. */
  constructor(file: URL, options: WorkerOptions, onEnded?: (failure: Error) => void) {
    this.#worker = new Worker(file, options);
    this.#worker.unref();
    this.#worker.on('message', (reply: Reply) => this.#receive(reply));
    this.#worker.once('error', (error) => {
      this.#failure ??= asTrawlError(error);
    });
    this.#ended = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        this.#failure ??= bug(`the thread ${options.name} ended with code ${code}`);
        for (const { reject } of this.#waiting.values()) reject(this.#failure);
        this.#waiting.clear();
        onEnded?.(this.#failure);
        resolve();
      });
    });
  }

  /**
   * @param transfer buffers that move to the thread.
   * @throws what the thread throws for this request; any error if the thread has ended.
   */
  ask<A extends Answer>(request: Request, transfer: readonly ArrayBuffer[] = []): Promise<A> {
    return this.#send({ request }, transfer) as Promise<A>;
  }

  /** Resolves when the thread can answer. @throws what `open` of `answerCalls` throws. */
  async opened(): Promise<void> {
    await this.#send({}, []);
  }

  /** Waits for the answers to all calls, then ends the thread. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#worker.ref();
    this.#worker.postMessage('close');
    await this.#ended;
  }

  /** Ends the thread at once; calls without an answer reject with the error. */
  async terminate(error: Error): Promise<void> {
    this.#failure ??= error;
    await this.#worker.terminate();
  }

  #send(call: Omit<Call, 'id'>, transfer: readonly ArrayBuffer[]): Promise<unknown> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.ref();
      this.#worker.postMessage({ ...call, id } satisfies Call, transfer);
    });
  }

  #receive(reply: Reply): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if (this.#waiting.size === 0 && !this.#isClosing) this.#worker.unref();
    if ('error' in reply) waiting?.reject(deserializeError(reply.error));
    else waiting?.resolve(reply.answer);
  }
}

/** Answers one request. Buffers that it adds to `transfer` move to the caller. */
type Answerer<Request> = (request: Request, transfer: ArrayBuffer[]) => unknown;

/**
 * In a worker thread: answers the calls of its `CallThread`, one after another.
 *
 * @param open is called at the start; what it throws answers every call.
 * @param close is called before the thread ends by `CallThread.close`.
 */
export function answerCalls<Request>(open: () => Promise<Answerer<Request>>, close?: () => void): void {
  const port = parentPort;
  if (port === null) throw bug('A file of a worker thread was loaded outside of one');
  const opened = open();
  let last: Promise<unknown> = opened.catch(() => undefined);
  const answer = async (call: Call): Promise<void> => {
    const { id } = call;
    const transfer: ArrayBuffer[] = [];
    try {
      const answerer = await opened;
      const answer = 'request' in call ? await answerer(call.request as Request, transfer) : undefined;
      port.postMessage({ id, answer } satisfies Reply, transfer);
    } catch (error) {
      port.postMessage({ id, error: serializeError(error) } satisfies Reply);
    }
  };
  port.on('message', (call: Call | 'close') => {
    last = last.then(async () => {
      if (call !== 'close') return answer(call);
      close?.();
      port.close();
      return undefined;
    });
  });
}
