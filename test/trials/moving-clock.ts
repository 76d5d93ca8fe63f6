import { existsSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A wall clock of another process that can be moved while it runs; its monotonic clock goes on as it is. */
export interface MovingClock {
  /** Environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  /** What moves it. */
  readonly how: string;
  /** Whole hours from the true time. */
  set(hours: number): void;
}

/** Where Debian's packages put it. */
const FAKETIME = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1',
];

/** libfaketime where it is installed (Debian: apt-get install libfaketime), else a module that is loaded first and moves Date. */
export function movingClock(folder: string): MovingClock {
  const library = FAKETIME.find((path) => existsSync(path));
  return library === undefined ? movingDate(folder) : faketime(folder, library);
}

function faketime(folder: string, library: string): MovingClock {
  const file = join(folder, 'clock');
  const set = (hours: number): void => {
    writeFileSync(file, `${hours < 0 ? '-' : '+'}${Math.abs(hours)}h`);
    // It reads the file again when its time has changed.
    utimesSync(file, new Date(), new Date());
  };
  set(0);
  return {
    how: 'libfaketime',
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    set,
  };
}

const MODULE = `
const { readFileSync } = require('node:fs');
const True = Date;
const now = () => True.now() + Number(readFileSync(process.env.TRIAL_CLOCK_FILE, 'utf8') || 0) * 3_600_000;
globalThis.Date = class Date extends True {
  constructor(...args) {
    if (args.length === 0) super(now());
    else super(...args);
  }
  static now() {
    return now();
  }
};
`;

/** Date alone, in all threads: what libraries in C ask for the time is told the true one. Exported for its test. */
export function movingDate(folder: string): MovingClock {
  const [file, module] = [join(folder, 'clock-hours'), join(folder, 'moving-date.cjs')];
  const set = (hours: number): void => writeFileSync(file, String(hours));
  set(0);
  writeFileSync(module, MODULE);
  return {
    how: 'Date moved',
    env: { NODE_OPTIONS: `--require ${JSON.stringify(module)}`, TRIAL_CLOCK_FILE: file },
    set,
  };
}
