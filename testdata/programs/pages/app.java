// The program of docs/java.md: it keeps a few megabytes of objects.
class App {
	static final java.util.List<byte[]> kept = new java.util.ArrayList<>();

	public static void main(String[] arguments) throws java.io.IOException {
		for (int i = 0; i < 4000; i++)
			kept.add(new byte[2000]);
		System.gc();
		System.out.println("ready");
		System.in.read();
	}
}
