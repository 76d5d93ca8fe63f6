import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { processPeakBytes } from './process-peak.ts';

/** An engine cannot be measured. If it is a baseline, the benchmark goes on without it. */
export class EngineUnavailable extends Error {
  override readonly name = 'EngineUnavailable';
}

/** Characters of a script's stderr that are kept for its error. */
const STDERR_TAIL = 2000;

/**
 * A running script that answers one request at a time, in lines of JSON (bench/baselines/protocol.py). The type of a reply is
 * not checked, because the scripts belong to this repository.
 */
export class ScriptProcess<Reply extends object> {
  readonly #name: string;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #ended: Promise<void>;
  #stderrTail = '';
  #endReason: string | undefined;
  #waiting: { resolve(reply: Reply & { error?: string }): void; reject(error: Error): void } | undefined;

  /** `name` appears in error messages. */
  constructor(name: string, command: string, args: readonly string[]) {
    this.#name = name;
    // A process group of its own, so that Ctrl-C reaches only the command, which then closes this process.
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    this.#ended = new Promise((resolve) => {
      const end = (reason: string): void => {
        this.#endReason ??= reason;
        this.#takeWaiting()?.reject(this.#unavailable());
        resolve();
      };
      this.#child.on('error', (error) => end(error.message));
      this.#child.on('close', (code, signal) => end(`${command} ended with ${signal ?? code}`));
    });
    // Writing to a dead script fails; its 'close' event reports that.
    this.#child.stdin.on('error', () => undefined);
    this.#child.stderr.on('data', (chunk: Buffer) => {
      this.#stderrTail = `${this.#stderrTail}${chunk}`.slice(-STDERR_TAIL);
    });
    createInterface({ input: this.#child.stdout }).on('line', (line) =>
      this.#takeWaiting()?.resolve(JSON.parse(line) as Reply),
    );
  }

  /** @throws EngineUnavailable if the script replies with an error or has ended. */
  async ask(request: { do: string } & Readonly<Record<string, string | number>>): Promise<Reply> {
    if (this.#endReason !== undefined) throw this.#unavailable();
    const reply = await new Promise<Reply & { error?: string }>((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    });
    if (reply.error !== undefined) throw new EngineUnavailable(reply.error);
    return reply;
  }

  /** Peak resident memory of the script's process; null if the system does not tell. */
  processBytes(): number | null {
    return this.#child.pid === undefined ? null : processPeakBytes(this.#child.pid);
  }

  /** Kills the script, which has nothing to clean up. May be called more than once. */
  async close(): Promise<void> {
    this.#child.stdin.end();
    this.#child.kill();
    await this.#ended;
  }

  #takeWaiting() {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  #unavailable(): EngineUnavailable {
    const lastLine = this.#stderrTail.trim().split('\n').at(-1) ?? '';
    return new EngineUnavailable(`${this.#name}: ${this.#endReason}${lastLine === '' ? '' : ` (${lastLine})`}`);
  }
}
