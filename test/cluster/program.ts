import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

export interface ProgramSpec {
  /** For messages. */
  readonly name: string;
  readonly command: readonly string[];
  readonly cwd: string;
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** File that the output is appended to. */
  readonly log: string;
}

/** Characters of the log in a message. */
const TAIL = 2_000;

/** A program of a cluster. It is killed when the process of the test ends, in whatever way (setpriv of util-linux). */
export class Program {
  readonly #spec: ProgramSpec;
  #child: ChildProcess | undefined;

  constructor(spec: ProgramSpec) {
    this.#spec = spec;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Starts it, again after it ended. */
  start(): void {
    const { name, command, cwd, env, log } = this.#spec;
    if (this.isRunning) throw new Error(`${name} runs already.`);
    const output = openSync(log, 'a');
    this.#child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...command], {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', output, output],
    });
    closeSync(output);
  }

  /**
   * Waits for a condition.
   *
   * @param restarts whether it is started again if it ends meanwhile, as by whoever runs it.
   * @throws Error with the end of the log if the program ends or the time is over.
   */
  async until(
    condition: () => Promise<boolean>,
    { ms, pollMs = 200, restarts = false }: { ms: number; pollMs?: number; restarts?: boolean },
  ): Promise<void> {
    const end = performance.now() + ms;
    while (!(await condition())) {
      if (!this.isRunning && !restarts) throw new Error(`${this.#spec.name} ended: ${this.logTail()}`);
      if (!this.isRunning) this.start();
      if (performance.now() > end) throw new Error(`${this.#spec.name} was not ready in ${ms} ms: ${this.logTail()}`);
      await pause(pollMs);
    }
  }

  /** SIGSTOP freezes it, SIGCONT lets it go on. */
  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  /** Sends a signal that ends it, and waits until it has ended; after `ms` it is killed. */
  async end(name: 'SIGTERM' | 'SIGKILL' = 'SIGTERM', ms = 60_000): Promise<void> {
    if (!this.isRunning) return;
    const ended = once(this.#child!, 'exit');
    this.signal(name);
    // A frozen program gets no other signal than SIGKILL before it goes on.
    this.signal('SIGCONT');
    const late = setTimeout(() => this.signal('SIGKILL'), ms);
    await ended;
    clearTimeout(late);
  }

  /** Waits until it ends by itself. @throws Error with the end of the log after `ms`. */
  async untilEnded(ms = 60_000): Promise<void> {
    const end = performance.now() + ms;
    while (this.isRunning) {
      if (performance.now() > end) throw new Error(`${this.#spec.name} did not end in ${ms} ms: ${this.logTail()}`);
      await pause(200);
    }
  }

  residentBytes(): number {
    const [, kb] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.#child!.pid}/status`, 'utf8')) ?? [];
    return Number(kb) * 1024;
  }

  logTail(): string {
    return readFileSync(this.#spec.log, 'utf8').slice(-TAIL);
  }
}
