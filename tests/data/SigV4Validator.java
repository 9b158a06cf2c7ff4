import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.util.*;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.*;

/** Accepts a token that is a URL signed with the key that the JAAS option secret has, as AWS MSK does. */
public class SigV4Validator implements AuthenticateCallbackHandler {
    private String secret;

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        secret = (String) entries.get(0).getOptions().get("secret");
    }

    @Override
    public void close() {}

    @Override
    public void handle(Callback[] callbacks) {
        for (Callback each : callbacks) {
            if (each instanceof OAuthBearerValidatorCallback callback) {
                try {
                    callback.token(checked(callback.tokenValue()));
                } catch (Exception error) {
                    callback.error("invalid_token: " + error.getMessage(), null, null);
                }
            } else if (each instanceof OAuthBearerExtensionsValidatorCallback callback) {
                callback.inputExtensions().map().keySet().forEach(callback::valid);
            }
        }
    }

    private OAuthBearerToken checked(String value) throws Exception {
        String url = new String(Base64.getUrlDecoder().decode(value), StandardCharsets.UTF_8);
        var signed = new TreeMap<String, String>();
        for (String pair : URI.create(url).getRawQuery().split("&")) {
            String[] parts = pair.split("=", 2);
            signed.put(parts[0], parts[1]);
        }
        signed.remove("User-Agent");
        String signature = signed.remove("X-Amz-Signature");
        String credential = URLDecoder.decode(signed.get("X-Amz-Credential"), StandardCharsets.UTF_8);
        String[] scope = credential.split("/", 2)[1].split("/");
        var query = new StringJoiner("&");
        signed.forEach((name, each) -> query.add(name + "=" + each));
        String request = "GET\n/\n" + query + "\nhost:" + URI.create(url).getHost() + "\n\nhost\n" + hash("");
        String date = signed.get("X-Amz-Date");
        String text = "AWS4-HMAC-SHA256\n" + date + "\n" + String.join("/", scope) + "\n" + hash(request);
        byte[] key = ("AWS4" + secret).getBytes(StandardCharsets.UTF_8);
        for (String part : scope) key = mac(key, part);
        if (!HexFormat.of().formatHex(mac(key, text)).equals(signature)) throw new SecurityException("signature");
        var signedAt = DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmssX").parse(date, Instant::from);
        long start = signedAt.toEpochMilli(), end = start + 1000 * Long.parseLong(signed.get("X-Amz-Expires"));
        return new OAuthBearerToken() {
            public String value() { return value; }
            public Set<String> scope() { return Set.of(); }
            public long lifetimeMs() { return end; }
            public String principalName() { return credential.split("/")[0]; }
            public Long startTimeMs() { return start; }
        };
    }

    private static String hash(String text) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)));
    }

    private static byte[] mac(byte[] key, String text) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }
}
