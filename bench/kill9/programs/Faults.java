// Threads that compute, fault and catch that, for ever; each line says that all results were right.
public class Faults {
    static int[] none = null;
    static int zero = 0;
    static volatile long rounds = 0;

    static long work() {
        long sum = 12345;
        for (long i = 0; i < 200000; i++) {
            if (sum % 3 == 0)
                sum = sum * 7 + 1;
            else
                sum ^= sum >> 3 | i << 40;
        }
        return sum;
    }

    static void wrong() {
        System.out.println("wrong");
        System.out.flush();
        Runtime.getRuntime().halt(1);
    }

    static void check(long expected) {
        while (true) {
            byte[][] garbage = new byte[50][];
            for (int i = 0; i < 50; i++) garbage[i] = new byte[1000];
            int caught = 0;
            try {
                caught += none[2];
            } catch (NullPointerException e) {
                ++caught;
            }
            try {
                caught += 7 / zero;
            } catch (ArithmeticException e) {
                ++caught;
            }
            if (caught != 2 || work() != expected || garbage[49].length != 1000) wrong();
            ++rounds;
        }
    }

    public static void main(String[] arguments) throws Exception {
        final long expected = work();
        for (int i = 0; i < 3; i++) {
            Thread thread = new Thread(() -> check(expected));
            thread.setDaemon(true);
            thread.start();
        }
        while (true) {
            long before = rounds;
            while (rounds == before) Thread.sleep(10);
            System.out.println("right");
        }
    }
}
